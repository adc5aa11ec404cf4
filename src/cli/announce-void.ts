import type { Logger } from "pino";
import { openPool } from "../db/pool.ts";
import { Leases } from "../holds/lease.ts";
import { openLog } from "../log.ts";
import { sealQueue } from "../queues/catalog.ts";
import { openFailFast } from "../queues/connections.ts";
import { openQueue } from "../queues/open-queue.ts";
import { sealVoucher } from "../services/seal-events.ts";
import type { VoidResult } from "../services/void-voucher.ts";

/** How long a command waits for Redis. Milliseconds. */
const CONNECT_MAX_MS = 2_000;

/**
 * Has a voided voucher's event sealed by a job, and gives its hold's lease back. Without Redis it seals the event itself, as any worker
 * would, and the lease, which stops nobody without a hold, is left to the sweeper.
 * @returns whether the event is sealed or has its job; otherwise the sweeper asks for its seal. Never throws: the voucher is voided.
 */
export async function announceVoid(
  { databaseUrl, redisUrl }: { databaseUrl: string; redisUrl: string | null },
  { voucherId, endedTicket }: VoidResult,
): Promise<boolean> {
  const log = openLog("silent", "voucherctl");
  const redis = redisUrl === null ? null : openFailFast(redisUrl, "voucherctl", log);
  try {
    if (redis === null) throw new Error("REDIS_URL is not set");
    await new Promise<void>((resolve, reject) => {
      redis.once("ready", resolve);
      setTimeout(reject, CONNECT_MAX_MS, new Error("Redis does not answer")).unref();
    });
    const queue = openQueue(sealQueue, redis, log);
    await queue.add(sealQueue.name, { voucherId }, { jobId: `${voucherId}-${crypto.randomUUID()}` });
    await queue.close();
    if (endedTicket !== null) await new Leases(redis).release(voucherId, endedTicket);
    return true;
  } catch {
    return await sealHere(databaseUrl, voucherId, log);
  } finally {
    redis?.disconnect();
  }
}

async function sealHere(databaseUrl: string, voucherId: string, log: Logger): Promise<boolean> {
  const pool = openPool({ databaseUrl, max: 1, applicationName: "voucherctl", partnerFacing: true, log });
  try {
    await sealVoucher({ pool }, voucherId);
    return true;
  } catch {
    // Whatever it was, the void is committed, and a command that failed would seem to have changed nothing.
    return false;
  } finally {
    await pool.end();
  }
}
