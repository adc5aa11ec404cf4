import type pg from "pg";
import { FIRST_RESERVATION, selectLiveReservations, selectLiveTickets } from "../reserve/db/reservations.ts";
import { type Leases, ORPHAN_AFTER_MS } from "../reserve/lease.ts";
import { findSweepPosition, moveSweepPosition, type ResumableTask } from "./db/sweep-positions.ts";

interface Deps {
  pool: pg.Pool;
  leases: Leases;
}

/** Reservations on a page, whose leases are checked at the same time. */
const RESERVATIONS_MAX = 1_000;
/** Keys that one SCAN reads, which takes Redis about a millisecond. */
const SCAN_COUNT = 1_000;

/**
 * Pages after which a pass stops, unless the last one needed a repair. 100 000 reservations are then checked in four
 * minutes.
 */
const CLEAN_PAGES_MAX = 2;

/** The position of the first page, from which the next run starts after the last page. */
const START = "0";

/** Repairs the page at a position. `next` is the position of the next one. */
type RepairPage = (position: string) => Promise<{ next: string; repaired: number }>;

/** Restores missing leases of live reservations, so that they refuse competing callers again. Returns their number. */
export function restoreLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  return repairPages(pool, "restore_leases", untilMs, async (position) => {
    const [expiresAt, ticket] = position.split(" ");
    const after = expiresAt && ticket ? { expiresAt: new Date(expiresAt), ticket } : FIRST_RESERVATION;
    const reservations = await selectLiveReservations(pool, after, RESERVATIONS_MAX);
    const restored = await Promise.all(reservations.map((reservation) => leases.restore(reservation)));
    const last = reservations.length === RESERVATIONS_MAX ? reservations.at(-1) : undefined;
    const next = last === undefined ? START : `${last.expiresAt.toISOString()} ${last.ticket}`;
    return { next, repaired: restored.filter(Boolean).length };
  });
}

/** Removes leases older than ORPHAN_AFTER_MS that have no live reservation. Returns their number. */
export function removeOrphanLeases({ pool, leases }: Deps, untilMs: number): Promise<number> {
  return repairPages(pool, "remove_orphan_leases", untilMs, async (position) => {
    const { cursor, found } = await leases.scan(position, SCAN_COUNT);
    const old = found.filter((lease) => lease.ageMs > ORPHAN_AFTER_MS);
    const tickets = old.map((lease) => lease.ticket);
    const live: ReadonlySet<string> = old.length === 0 ? new Set() : await selectLiveTickets(pool, tickets);
    const orphans = old.filter((lease) => !live.has(lease.ticket));
    const removed = await Promise.all(orphans.map(({ voucherId, ticket }) => leases.release(voucherId, ticket)));
    return { next: cursor, repaired: removed.filter(Boolean).length };
  });
}

/** Repairs pages from where the last run stopped. Returns the number of repairs. */
async function repairPages(
  pool: pg.Pool,
  task: ResumableTask,
  untilMs: number,
  repairPage: RepairPage,
): Promise<number> {
  let position = (await findSweepPosition(pool, task))?.position ?? START;
  let count = 0;
  for (let pages = 1; ; pages++) {
    const { next, repaired } = await repairPage(position);
    position = next;
    count += repaired;
    const mayContinue = pages < CLEAN_PAGES_MAX || repaired > 0;
    if (next === START || !mayContinue || performance.now() >= untilMs) break;
  }
  await moveSweepPosition(pool, { task, position });
  return count;
}
