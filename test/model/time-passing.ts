import type { TestServers } from "../support/servers.ts";

/** Makes a lease older. A lease past its expiry ends at once. */
const MOVE_LEASE_BACK = [
  "if redis.call('EXISTS', KEYS[1]) == 0 then return end",
  "redis.call('HINCRBY', KEYS[1], 'start', -ARGV[1])",
  "redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) - ARGV[1])",
].join(" ");

/**
 * Simulates the passing of time for some vouchers: moves everything that is compared with a clock back by that time. That is the start and
 * end of live reservations, the end of validity, and the age and expiry of leases. Past moments, such as redemptions, events and ended
 * reservations, are never compared with a clock and stay. No job runs here, so no deadline has to move.
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
    await servers.redis.eval(MOVE_LEASE_BACK, 1, servers.leaseKey(voucherId), seconds * 1_000);
  }
}

/** The same as shell lines, for all vouchers. */
export function moveBackInShell(seconds: number): string[] {
  const by = `interval '${seconds} s'`;
  return [
    `psql "$DATABASE_URL" -qc "UPDATE reservations SET started_at = started_at - ${by}, expires_at = expires_at - ${by} WHERE state = 'Live'"`,
    `psql "$DATABASE_URL" -qc "UPDATE batches SET valid_until = valid_until - ${by}"`,
    `redis-cli -u "$REDIS_URL" --scan --pattern 'lease:*' | while read -r LEASE; do redis-cli -u "$REDIS_URL" eval "${MOVE_LEASE_BACK}" 1 "$LEASE" ${seconds * 1_000}; done`,
  ];
}
