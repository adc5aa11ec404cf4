import type { Hold } from "../domain/hold.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { bind, loadStatements } from "./statements.ts";

const sql = loadStatements(new URL("./reservations.sql", import.meta.url), [
  "open_holds",
  "end_holds",
  "find_hold_voucher",
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

/** Opens holds on locked vouchers; returns how many were opened. */
export async function openHolds(tx: Transaction, holds: readonly NewHold[]): Promise<number> {
  if (holds.length === 0) return 0;
  const { rowCount } = await tx.query(
    bind(sql.open_holds, [
      holds.map((hold) => hold.ticket),
      holds.map((hold) => hold.voucherId),
      holds.map((hold) => hold.organizationId),
      holds.map((hold) => hold.keyId),
      holds.map((hold) => hold.startedAt),
      holds.map((hold) => hold.expiresAt),
      holds.map((hold) => hold.tokenSecretId),
    ]),
  );
  return rowCount ?? 0;
}

/** Ends Live holds of locked vouchers; returns how many were Live. */
export async function endHolds(tx: Transaction, holds: readonly EndedHold[], endedAt: Date): Promise<number> {
  if (holds.length === 0) return 0;
  const { rowCount } = await tx.query(
    bind(sql.end_holds, [
      holds.map((hold) => hold.ticket),
      holds.map((hold) => hold.state),
      holds.map((hold) => hold.reason ?? null),
      endedAt,
    ]),
  );
  return rowCount ?? 0;
}

/** The voucher of a ticket of this organization, or null. */
export async function findHoldVoucher(db: Queryable, ticket: string, organizationId: string): Promise<string | null> {
  const { rows } = await db.query<{ voucher_id: string }>(bind(sql.find_hold_voucher, [ticket, organizationId]));
  return rows[0]?.voucher_id ?? null;
}
