import type { EventContent, EventType, Seal, StoredEvent } from "../domain/chain.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { bind, loadStatements, type Writes } from "./statements.ts";

const sql = loadStatements(new URL("./events.sql", import.meta.url), [
  "insert_sealed_events",
  "insert_pending_event",
  "select_pending_events",
  "select_overdue_seals",
  "find_oldest_pending_age",
  "seal_events",
  "select_events_page",
  "select_events_of_range",
  "select_canon_preserved_since",
]);

/** An event together with its seal. */
export interface SealedEvent {
  event: EventContent;
  seal: Seal;
}

/** Writes that append sealed events to chains of locked vouchers. */
export function insertSealedEvents(sealed: readonly SealedEvent[]): Writes {
  if (sealed.length === 0) return [];
  return [
    bind(sql.insert_sealed_events, [
      sealed.map(({ event }) => event.voucherId),
      sealed.map(({ event }) => event.sequence),
      sealed.map(({ event }) => event.eventType),
      sealed.map(({ event }) => event.occurredAt),
      sealed.map(({ event }) => event.actorConnectedId),
      sealed.map(({ event }) => event.actorIsEmployee),
      sealed.map(({ seal }) => seal.previousHash),
      sealed.map(({ seal }) => seal.recordHash),
      sealed.map(({ seal }) => seal.payload),
    ]),
  ];
}

/** Writes that append an event to the chain of a locked voucher, to be sealed later. */
export function insertPendingEvent(event: EventContent): Writes {
  return [
    bind(sql.insert_pending_event, [
      event.voucherId,
      event.sequence,
      event.eventType,
      event.occurredAt,
      event.actorConnectedId,
      event.actorIsEmployee,
      JSON.stringify(event.data),
    ]),
  ];
}

/** The events of locked vouchers that wait for their seal, by voucher and sequence. */
export async function selectPendingEvents(tx: Transaction, voucherIds: readonly string[]): Promise<EventContent[]> {
  const { rows } = await tx.query<{
    voucher_id: string;
    sequence: number;
    event_type: EventType;
    occurred_at: Date;
    actor_connected_id: string | null;
    actor_is_employee: boolean | null;
    data: EventContent["data"];
  }>(bind(sql.select_pending_events, [voucherIds]));
  return rows.map((row) => ({
    voucherId: row.voucher_id,
    sequence: row.sequence,
    eventType: row.event_type,
    occurredAt: row.occurred_at,
    actorConnectedId: row.actor_connected_id,
    actorIsEmployee: row.actor_is_employee,
    data: row.data,
  }));
}

/** Vouchers that have had a Pending event for longer than `ageMs`; looks at `limit` events at most. */
export async function selectOverdueSeals(db: Queryable, ageMs: number, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ voucher_id: string }>(bind(sql.select_overdue_seals, [ageMs, limit]));
  return [...new Set(rows.map((row) => row.voucher_id))];
}

/** How long the oldest Pending event has been waiting for its seal, in milliseconds; 0 when none waits. */
export async function findOldestPendingAge(db: Queryable): Promise<number> {
  const { rows } = await db.query<{ age_ms: number }>(bind(sql.find_oldest_pending_age, []));
  return rows[0]?.age_ms ?? 0;
}

/** Writes of the seals of Pending events of locked vouchers. */
export function writeSeals(sealed: readonly SealedEvent[]): Writes {
  if (sealed.length === 0) return [];
  return [
    bind(sql.seal_events, [
      sealed.map(({ event }) => event.voucherId),
      sealed.map(({ event }) => event.sequence),
      sealed.map(({ seal }) => seal.previousHash),
      sealed.map(({ seal }) => seal.recordHash),
      sealed.map(({ seal }) => seal.payload),
    ]),
  ];
}

interface EventRow {
  voucher_id: string;
  sequence: number;
  event_type: string;
  occurred_at: Date;
  seal_status: "Pending" | "Sealed";
  actor_connected_id: string | null;
  actor_is_employee: boolean | null;
  previous_hash: string | null;
  record_hash: string | null;
  payload: string | null;
}

function toStoredEvent(row: EventRow): StoredEvent {
  return {
    voucherId: row.voucher_id,
    sequence: row.sequence,
    eventType: row.event_type,
    occurredAt: row.occurred_at,
    sealStatus: row.seal_status,
    actorConnectedId: row.actor_connected_id,
    actorIsEmployee: row.actor_is_employee,
    previousHash: row.previous_hash,
    recordHash: row.record_hash,
    payload: row.payload,
  };
}

/** At most `limit` events of one voucher behind sequence `after`, in order. */
export async function selectEventsPage(
  db: Queryable,
  voucherId: string,
  after: number,
  limit: number,
): Promise<StoredEvent[]> {
  const { rows } = await db.query<EventRow>(bind(sql.select_events_page, [voucherId, after, limit]));
  return rows.map(toStoredEvent);
}

/** All events of the vouchers behind `afterId` up to `lastId`, in chain order. */
export async function selectEventsOfRange(db: Queryable, afterId: string, lastId: string): Promise<StoredEvent[]> {
  const { rows } = await db.query<EventRow>(bind(sql.select_events_of_range, [afterId, lastId]));
  return rows.map(toStoredEvent);
}

/** Since when this deployment keeps event payloads unchanged. */
export async function selectCanonPreservedSince(db: Queryable): Promise<Date> {
  const { rows } = await db.query<{ canon_preserved_since: Date }>(bind(sql.select_canon_preserved_since, []));
  if (rows[0] === undefined) throw new Error("the deployment row is missing");
  return rows[0].canon_preserved_since;
}
