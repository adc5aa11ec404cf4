import { Deployment } from "../db/deployment.ts";
import { openPool } from "../db/pool.ts";
import { Leases } from "../holds/lease.ts";
import { openLog } from "../log.ts";
import { openSealRequests } from "../queues/job-requests.ts";
import type { VoidResult } from "../services/admin/void-voucher.ts";
import { sealVoucher } from "../services/chain/seal-events.ts";
import type { CommandContext } from "./command.ts";
import { withRedis } from "./with-redis.ts";

/**
 * Adds a job that seals a voided voucher's event, and releases its reservation's lease. If REDIS_URL is not set, Redis does not answer or
 * the queue is full, seals the event itself. The sweeper removes a lease that was not released.
 * @returns whether the event is sealed or has a job. If not, the sweeper adds a job. Does not throw, because the void is already committed.
 */
export async function announceVoid(
  { databaseUrl, redisUrl, queueShards }: Pick<CommandContext, "databaseUrl" | "redisUrl" | "queueShards">,
  { voucherId, endedTicket }: VoidResult,
): Promise<boolean> {
  const log = openLog("silent", "voucherctl");
  const deployment = new Deployment(log);
  const pool = openPool({ databaseUrl, max: 1, applicationName: "voucherctl", deployment, log });
  const requestSeal = async () => {
    if (redisUrl === null) throw new Error("REDIS_URL is not set");
    await withRedis({ redisUrl, log }, async (redis) => {
      const requests = openSealRequests({ redis, shards: queueShards[0], deployment, log });
      const added = await requests.add([voucherId]).finally(() => requests.close());
      if (endedTicket !== null) await new Leases(redis, deployment).release(voucherId, endedTicket);
      if (added === 0) throw new Error("the seal queue is full");
    });
  };
  try {
    // Connecting sets the id of `deployment`, which the Redis keys contain.
    await pool.query("SELECT 1");
    await requestSeal().catch(() => sealVoucher({ pool }, voucherId));
    return true;
  } catch {
    return false;
  } finally {
    await pool.end();
  }
}
