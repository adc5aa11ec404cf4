import type { WorkerContext } from "../context.ts";
import { FIRST_HOLD, type HoldPosition, selectLiveHolds, selectLiveTickets } from "../db/reservations.ts";
import { findSweepPosition, moveSweepPosition } from "../db/sweep-positions.ts";
import { type FoundLease, ORPHAN_AFTER_MS } from "../holds/lease.ts";

type Deps = Pick<WorkerContext, "pool" | "leases">;

/** Holds whose leases are looked at in one round trip. */
const HOLDS_MAX = 1_000;
/** Keys of Redis that one SCAN goes over: about a millisecond of Redis. */
const SCAN_COUNT = 1_000;

/**
 * Pages of either kind that a pass looks at while it finds nothing to mend, so that a hundred thousand holds cost as little as a
 * few: at one pass in five seconds the round over them takes four minutes, and a hold lives for fifteen. A pass that mends something goes on.
 */
const PEACEFUL_PAGES = 2;

/**
 * Puts back leases that are missing behind live holds, going round over all of them, so that after Redis was restarted empty
 * contenders are turned away before they queue for the row again.
 * @returns how many were missing.
 */
export async function restoreLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  let after = toHoldPosition((await findSweepPosition(pool, "restore_leases"))?.position);
  let count = 0;
  let pages = 0;
  let missing = 0;
  do {
    const holds = await selectLiveHolds(pool, after, HOLDS_MAX);
    const restored = await Promise.all(holds.map((hold) => leases.restore(hold)));
    missing = restored.filter((wasMissing) => wasMissing).length;
    count += missing;
    pages += 1;
    const last = holds.at(-1);
    // After the last hold the next pass begins anew.
    after = holds.length === HOLDS_MAX && last !== undefined ? last : FIRST_HOLD;
  } while (after !== FIRST_HOLD && goesOn(pages, missing, untilMs));
  await moveSweepPosition(pool, "restore_leases", `${after.expiresAt.toISOString()} ${after.ticket}`);
  return count;
}

function toHoldPosition(position: string | undefined): HoldPosition {
  const [expiresAt, ticket] = position?.split(" ") ?? [];
  return expiresAt === undefined || ticket === undefined ? FIRST_HOLD : { expiresAt: new Date(expiresAt), ticket };
}

/**
 * Removes leases that have been without a live hold for longer than a reserve takes, going round over all of Redis.
 * @returns how many were removed.
 */
export async function removeOrphanLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  let cursor = (await findSweepPosition(pool, "remove_orphan_leases"))?.position ?? "0";
  let count = 0;
  let pages = 0;
  let removed = 0;
  do {
    const seen = await leases.scan(cursor, SCAN_COUNT);
    cursor = seen.cursor;
    const old = seen.found.filter((lease) => lease.ageMs > ORPHAN_AFTER_MS);
    removed = await removeOrphans({ pool, leases }, old);
    count += removed;
    pages += 1;
  } while (cursor !== "0" && goesOn(pages, removed, untilMs));
  await moveSweepPosition(pool, "remove_orphan_leases", cursor);
  return count;
}

function goesOn(pages: number, mended: number, untilMs: number): boolean {
  return (pages < PEACEFUL_PAGES || mended > 0) && performance.now() < untilMs;
}

async function removeOrphans({ pool, leases }: Deps, found: readonly FoundLease[]): Promise<number> {
  if (found.length === 0) return 0;
  const tickets = found.map((lease) => lease.ticket);
  const live = await selectLiveTickets(pool, tickets);
  const orphans = found.filter((lease) => !live.has(lease.ticket));
  const removed = await Promise.all(orphans.map(({ voucherId, ticket }) => leases.release(voucherId, ticket)));
  return removed.filter((gone) => gone).length;
}
