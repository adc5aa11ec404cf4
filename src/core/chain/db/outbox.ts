import { arrayOf, boolean, integer, text } from "../../../platform/db/columns.ts";
import { type PreparedStatements, Statements } from "../../../platform/db/statements.ts";

export const sql = new Statements(new URL("./outbox.sql", import.meta.url));

export const hasEnabledTargets = sql.requiredValue("find_enabled_endpoints", { hasTargets: boolean });
export const announceEvents = sql.prepareAll("announce_events", { voucherId: text, sequence: integer });
const announceExpired = sql.prepare("announce_expired_reservations", { ticket: arrayOf(text) });

/** Statements that announce reservations that the transaction has expired. */
export function announceExpiredReservations(tickets: readonly string[]): PreparedStatements {
  return tickets.length === 0 ? [] : [announceExpired(tickets)];
}
