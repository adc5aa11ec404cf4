import { portionsOf } from "../../../platform/batching/shares.ts";
import { arrayOf, boolean, integer, text } from "../../../platform/db/columns.ts";
import { type PreparedStatements, Statements } from "../../../platform/db/statements.ts";

export const sql = new Statements(new URL("./outbox.sql", import.meta.url));

/** Maximum number of events in one row of the outbox. A constraint in migration 00014 enforces the same number. */
export const ROW_EVENTS_MAX = 4_096;

export const hasEnabledTargets = sql.requiredValue("find_enabled_endpoints", { hasTargets: boolean });
const announceSealed = sql.prepareAll("announce_events", { voucherId: text, sequence: integer });
const announceExpired = sql.prepare("announce_expired_reservations", { ticket: arrayOf(text) });

/** Statements that write sealed events of locked vouchers to the outbox, in order. */
export function announceEvents(events: readonly { voucherId: string; sequence: number }[]): PreparedStatements {
  return portionsOf(events, ROW_EVENTS_MAX).flatMap((portion) => announceSealed(portion));
}

/** Statements that write reservations to the outbox after the transaction has expired them. */
export function announceExpiredReservations(tickets: readonly string[]): PreparedStatements {
  return portionsOf(tickets, ROW_EVENTS_MAX).map((portion) => announceExpired(portion));
}
