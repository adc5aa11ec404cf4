import type pg from "pg";
import {
  FIRST_RESERVATION,
  type ReservationPosition,
  selectLiveReservations,
  selectLiveTickets,
} from "../../db/reservations.ts";
import { findSweepPosition, moveSweepPosition } from "../../db/sweep-positions.ts";
import { type FoundLease, type Leases, ORPHAN_AFTER_MS } from "../../holds/lease.ts";

interface Deps {
  pool: pg.Pool;
  leases: Leases;
}

/** Reservations on a page, whose leases are checked at the same time. */
const RESERVATIONS_MAX = 1_000;
/** Keys that one SCAN reads, which takes Redis about a millisecond. */
const SCAN_COUNT = 1_000;

/**
 * Pages after which a pass stops, unless the last page needed a repair. This bounds the cost of a pass that has nothing to repair. With a pass
 * every five seconds, 100 000 reservations are checked in four minutes, and a reservation lasts fifteen.
 */
const CLEAN_PAGES_MAX = 2;

/**
 * Restores missing leases of live reservations and returns their number. Each run continues where the last one stopped. After Redis has lost
 * its data, restored leases again refuse competing callers before they wait for the voucher's row.
 */
export async function restoreLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  let after = toReservationPosition((await findSweepPosition(pool, "restore_leases"))?.position);
  let count = 0;
  let pages = 0;
  let missing = 0;
  do {
    const reservations = await selectLiveReservations(pool, after, RESERVATIONS_MAX);
    const restored = await Promise.all(reservations.map((reservation) => leases.restore(reservation)));
    missing = restored.filter(Boolean).length;
    count += missing;
    pages += 1;
    const last = reservations.at(-1);
    // After the last reservation, the next pass starts from the first one.
    after = reservations.length === RESERVATIONS_MAX && last !== undefined ? last : FIRST_RESERVATION;
  } while (after !== FIRST_RESERVATION && mayContinue(pages, missing, untilMs));
  await moveSweepPosition(pool, "restore_leases", `${after.expiresAt.toISOString()} ${after.ticket}`);
  return count;
}

function toReservationPosition(position: string | undefined): ReservationPosition {
  const [expiresAt, ticket] = position?.split(" ") ?? [];
  return expiresAt === undefined || ticket === undefined
    ? FIRST_RESERVATION
    : { expiresAt: new Date(expiresAt), ticket };
}

/**
 * Removes leases older than ORPHAN_AFTER_MS that have no live reservation. Returns their number. Each run continues where the last one
 * stopped.
 */
export async function removeOrphanLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  let cursor = (await findSweepPosition(pool, "remove_orphan_leases"))?.position ?? "0";
  let count = 0;
  let pages = 0;
  let removed = 0;
  do {
    const scanned = await leases.scan(cursor, SCAN_COUNT);
    cursor = scanned.cursor;
    const old = scanned.found.filter((lease) => lease.ageMs > ORPHAN_AFTER_MS);
    removed = await removeOrphans({ pool, leases }, old);
    count += removed;
    pages += 1;
  } while (cursor !== "0" && mayContinue(pages, removed, untilMs));
  await moveSweepPosition(pool, "remove_orphan_leases", cursor);
  return count;
}

function mayContinue(pages: number, repaired: number, untilMs: number): boolean {
  return (pages < CLEAN_PAGES_MAX || repaired > 0) && performance.now() < untilMs;
}

async function removeOrphans({ pool, leases }: Deps, found: readonly FoundLease[]): Promise<number> {
  if (found.length === 0) return 0;
  const tickets = found.map((lease) => lease.ticket);
  const live = await selectLiveTickets(pool, tickets);
  const orphans = found.filter((lease) => !live.has(lease.ticket));
  const removed = await Promise.all(orphans.map(({ voucherId, ticket }) => leases.release(voucherId, ticket)));
  return removed.filter(Boolean).length;
}
