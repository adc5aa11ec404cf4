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

/** Opens holds on locked vouchers and returns the tickets that were opened. */
export async function openHolds(tx: Transaction, holds: readonly NewHold[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ ticket: string }>(
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
  return new Set(rows.map((row) => row.ticket));
}

/** Ends Live holds of locked vouchers and returns the tickets that were ended. */
export async function endHolds(
  tx: Transaction,
  tickets: readonly string[],
  endedAt: Date,
  state: Exclude<HoldState, "Live">,
  reason: string | null = null,
): Promise<Set<string>> {
  const { rows } = await tx.query<{ ticket: string }>(bind(sql.end_holds, [tickets, endedAt, state, reason]));
  return new Set(rows.map((row) => row.ticket));
}

/** The voucher of a ticket of this organization, or null. */
export async function findHoldVoucher(db: Queryable, ticket: string, organizationId: string): Promise<string | null> {
  const { rows } = await db.query<{ voucher_id: string }>(bind(sql.find_hold_voucher, [ticket, organizationId]));
  return rows[0]?.voucher_id ?? null;
}
