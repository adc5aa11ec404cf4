import type { Hold } from "../domain/hold.ts";
import type { Queryable } from "./pool.ts";
import { bind, loadStatements, type Writes } from "./statements.ts";

const sql = loadStatements(new URL("./reservations.sql", import.meta.url), [
  "open_holds",
  "end_holds",
  "find_hold_voucher",
  "select_overdue_holds",
  "select_live_holds",
  "select_live_tickets",
  "count_live_holds",
]);

/** How a hold stands, or how it ended. */
export type HoldState = "Live" | "Consumed" | "Released" | "Expired";

/** A hold to be written. */
export interface NewHold extends Hold {
  voucherId: string;
  organizationId: string;
}

/** How a hold is ended. */
export interface EndedHold {
  ticket: string;
  state: Exclude<HoldState, "Live">;
  reason?: string | null;
}

/** Writes that open holds on locked vouchers. */
export function openHolds(holds: readonly NewHold[]): Writes {
  if (holds.length === 0) return [];
  return [
    bind(sql.open_holds, [
      holds.map((hold) => hold.ticket),
      holds.map((hold) => hold.voucherId),
      holds.map((hold) => hold.organizationId),
      holds.map((hold) => hold.keyId),
      holds.map((hold) => hold.startedAt),
      holds.map((hold) => hold.expiresAt),
      holds.map((hold) => hold.tokenSecretId),
    ]),
  ];
}

/** Writes that end Live holds of locked vouchers. */
export function endHolds(holds: readonly EndedHold[], endedAt: Date): Writes {
  if (holds.length === 0) return [];
  return [
    bind(sql.end_holds, [
      holds.map((hold) => hold.ticket),
      holds.map((hold) => hold.state),
      holds.map((hold) => hold.reason ?? null),
      endedAt,
    ]),
  ];
}

/** The voucher of a ticket of this organization, or null. */
export async function findHoldVoucher(db: Queryable, ticket: string, organizationId: string): Promise<string | null> {
  const { rows } = await db.query<{ voucher_id: string }>(bind(sql.find_hold_voucher, [ticket, organizationId]));
  return rows[0]?.voucher_id ?? null;
}

/** A place in the order in which holds end. */
export interface HoldPosition {
  expiresAt: Date;
  ticket: string;
}

/** Before all holds. */
export const FIRST_HOLD: HoldPosition = { expiresAt: new Date(0), ticket: "" };

/** At most `limit` Live rows behind `after` whose time is over, in the order in which it ended. */
export async function selectOverdueHolds(
  db: Queryable,
  after: HoldPosition,
  limit: number,
): Promise<(HoldPosition & { voucherId: string })[]> {
  const { rows } = await db.query<{ ticket: string; voucher_id: string; expires_at: Date }>(
    bind(sql.select_overdue_holds, [after.expiresAt, after.ticket, limit]),
  );
  return rows.map((row) => ({ ticket: row.ticket, voucherId: row.voucher_id, expiresAt: row.expires_at }));
}

/** A hold that lives. Durations are milliseconds by the database's clock. */
export interface LivingHold extends HoldPosition {
  voucherId: string;
  keyId: string;
  ageMs: number;
  leftMs: number;
}

/** At most `limit` holds that live, behind `after`, in the order in which they will end. */
export async function selectLiveHolds(db: Queryable, after: HoldPosition, limit: number): Promise<LivingHold[]> {
  const { rows } = await db.query<{
    ticket: string;
    voucher_id: string;
    key_id: string;
    expires_at: Date;
    age_ms: number;
    left_ms: number;
  }>(bind(sql.select_live_holds, [after.expiresAt, after.ticket, limit]));
  return rows.map((row) => ({
    ticket: row.ticket,
    voucherId: row.voucher_id,
    keyId: row.key_id,
    expiresAt: row.expires_at,
    ageMs: row.age_ms,
    leftMs: row.left_ms,
  }));
}

/** Those of the tickets whose hold lives. */
export async function selectLiveTickets(db: Queryable, tickets: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ ticket: string }>(bind(sql.select_live_tickets, [tickets]));
  return new Set(rows.map((row) => row.ticket));
}

/** How many holds are live, counted up to `max`. */
export async function countLiveHolds(db: Queryable, max: number): Promise<number> {
  const { rows } = await db.query<{ live: number }>(bind(sql.count_live_holds, [max]));
  return rows[0]?.live ?? 0;
}
