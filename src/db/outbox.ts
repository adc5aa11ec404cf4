import { boolean } from "./columns.ts";
import type { Transaction } from "./pool.ts";
import { columnsOf, loadStatements, type PreparedStatements, prepare, readRequiredRow } from "./statements.ts";

export const sql = loadStatements(new URL("./outbox.sql", import.meta.url), {
  find_enabled_endpoints: { hasEndpoints: boolean },
  announce_events: {},
  announce_expired_reservations: {},
});

/** Whether any webhook endpoint is enabled. */
export async function hasEnabledEndpoints(tx: Transaction): Promise<boolean> {
  return (await readRequiredRow(tx, sql.find_enabled_endpoints, [])).hasEndpoints;
}

/** A sealed event by its place in its chain. */
export interface AnnouncedEvent {
  voucherId: string;
  sequence: number;
}

/** Statements that announce sealed events of locked vouchers to the endpoints of their organizations. */
export function announceEvents(events: readonly AnnouncedEvent[]): PreparedStatements {
  if (events.length === 0) return [];
  return [prepare(sql.announce_events, columnsOf(events, "voucherId", "sequence"))];
}

/** Statements that announce reservations that the transaction has expired. */
export function announceExpiredReservations(tickets: readonly string[]): PreparedStatements {
  return tickets.length === 0 ? [] : [prepare(sql.announce_expired_reservations, [tickets])];
}
