import { leaseKey } from "../../src/holds/lease.ts";
import type { TestServers } from "../support/servers.ts";

/** Makes a lease older; one whose life would be over by then ends at once. */
const MOVE_LEASE_BACK = [
  "if redis.call('EXISTS', KEYS[1]) == 0 then return end",
  "redis.call('HINCRBY', KEYS[1], 'start', -ARGV[1])",
  "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) - ARGV[1])",
].join(" ");

/**
 * Lets time pass for some vouchers without waiting for it: everything of theirs that is compared with a clock moves back by that
 * time, which leaves every difference to the clock as it would be then. These are the ends of holds (with their beginnings,
 * which a look-up shows), the ends of validity, and the ages and lives of leases in Redis. Moments that have happened are
 * never compared with a clock: ended holds, burns and events stay as they are, and the triggers that protect them are
 * not touched. No job is under way here, so no deadline has to move.
 */
export async function moveBack(servers: TestServers, voucherIds: readonly string[], seconds: number): Promise<void> {
  await servers.db.query(
    `WITH moved AS (
       UPDATE reservations
          SET started_at = started_at - make_interval(secs => $2), expires_at = expires_at - make_interval(secs => $2)
        WHERE state = 'Live' AND voucher_id = ANY ($1)
     )
     UPDATE batches SET valid_until = valid_until - make_interval(secs => $2)
      WHERE id IN (SELECT batch_id FROM vouchers WHERE id = ANY ($1))`,
    [voucherIds, seconds],
  );
  for (const voucherId of voucherIds) {
    await servers.redis.eval(MOVE_LEASE_BACK, 1, leaseKey(voucherId), seconds * 1_000);
  }
}

/** The same for a shell and for all vouchers that there are. */
export function moveBackInShell(seconds: number): string[] {
  const by = `interval '${seconds} s'`;
  return [
    `psql "$DATABASE_URL" -qc "UPDATE reservations SET started_at = started_at - ${by}, expires_at = expires_at - ${by} WHERE state = 'Live'"`,
    `psql "$DATABASE_URL" -qc "UPDATE batches SET valid_until = valid_until - ${by}"`,
    `redis-cli -u "$REDIS_URL" --scan --pattern 'lease:*' | while read -r LEASE; do redis-cli -u "$REDIS_URL" eval "${MOVE_LEASE_BACK}" 1 "$LEASE" ${seconds * 1_000}; done`,
  ];
}
