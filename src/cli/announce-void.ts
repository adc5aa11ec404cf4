import { Leases } from "../holds/lease.ts";
import { openLog } from "../log.ts";
import { sealQueue } from "../queues/catalog.ts";
import { openFailFast } from "../queues/connections.ts";
import { openQueue } from "../queues/open-queue.ts";
import type { VoidResult } from "../services/void-voucher.ts";

/** How long a command waits for Redis. Milliseconds. */
const CONNECT_MAX_MS = 2_000;

/**
 * Tells Redis that a voucher was voided: a seal job for its event, and its hold's lease back. Without Redis nothing is lost:
 * the next move of the voucher seals the event, and a lease without a hold stops nobody.
 */
export async function announceVoid(redisUrl: string | null, { voucherId, endedTicket }: VoidResult): Promise<void> {
  if (redisUrl === null) return;
  const log = openLog("silent", "voucherctl");
  const redis = openFailFast(redisUrl, "voucherctl", log);
  try {
    await new Promise<void>((resolve, reject) => {
      redis.once("ready", resolve);
      setTimeout(reject, CONNECT_MAX_MS, new Error("Redis does not answer")).unref();
    });
    const queue = openQueue(sealQueue, redis, log);
    await queue.add(sealQueue.name, { voucherId }, { jobId: `${voucherId}-${crypto.randomUUID()}` });
    await queue.close();
    if (endedTicket !== null) await new Leases(redis).release(voucherId, endedTicket);
  } catch (error) {
    process.stderr.write(`The voucher is voided; its event will be sealed later (${(error as Error).message}).\n`);
  } finally {
    redis.disconnect();
  }
}
