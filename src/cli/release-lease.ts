import type { VoidResult } from "../acts/void-voucher.ts";
import { Leases } from "../core/reserve/lease.ts";
import { DatabaseFence } from "../platform/db/database-fence.ts";
import { openPool } from "../platform/db/pool.ts";
import { openLogger } from "../platform/logger.ts";
import type { CommandContext } from "./command.ts";
import { withRedis } from "./with-redis.ts";

/**
 * Releases the lease of a reservation that was ended by voiding its voucher. Does nothing without REDIS_URL. Does not
 * throw, because the change is already committed, and a lease that is left expires.
 */
export async function releaseLeaseOfVoid(
  { databaseUrl, redisUrl }: Pick<CommandContext, "databaseUrl" | "redisUrl">,
  { voucherId, endedTicket }: VoidResult,
): Promise<void> {
  if (redisUrl === null || endedTicket === null) return;
  const log = openLogger("silent", "voucherctl");
  const deployment = new DatabaseFence(log);
  const pool = openPool({ databaseUrl, max: 1, applicationName: "voucherctl", use: "service", deployment, log });
  try {
    // Runs a query only to connect. Connecting sets the id of `deployment`, which the Redis keys contain.
    await pool.query("SELECT 1");
    await withRedis({ redisUrl, log }, (redis) => new Leases(redis, deployment).release(voucherId, endedTicket));
  } catch {
    // Ignores the failure, because the lease expires on its own.
  } finally {
    await pool.end();
  }
}
