import type { EventContent, EventType, Seal, StoredEvent } from "../domain/chain.ts";
import { bigint, boolean, bytea, integer, json, orNull, type Row, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import {
  columnsOf,
  loadStatements,
  type PreparedStatements,
  prepare,
  readRequiredRow,
  readRow,
  readRows,
} from "./statements.ts";

const STORED_EVENT = {
  voucherId: text,
  sequence: integer,
  eventType: text,
  occurredAt: timestamptz,
  sealStatus: textOf<StoredEvent["sealStatus"]>(),
  actorConnectedId: orNull(text),
  actorIsEmployee: orNull(boolean),
  previousHash: orNull(text),
  recordHash: orNull(text),
  payload: orNull(text),
};

const LOGGED_HASH = {
  voucherId: text,
  sequence: integer,
  recordHash: bytea,
  /** Whether the event belongs to a batch of leaves. The batch may still wait for its place in the log. */
  hasSlot: boolean,
  logIndex: orNull(bigint),
  /** The hash in the event's slot of a waiting batch. Null unless the batch waits; empty if the slot is past the batch's end. */
  waitingHash: orNull(bytea),
};

/** A sealed event that belongs to no batch of leaves yet. */
const UNLOGGED_EVENT = {
  voucherId: text,
  sequence: integer,
  /** In hex. */
  recordHash: text,
};

const LOGGED_EVENT = { payload: orNull(text), recordHash: orNull(bytea), logIndex: orNull(bigint) };

export const sql = loadStatements(new URL("./events.sql", import.meta.url), {
  insert_sealed_events: {},
  insert_pending_events: {},
  select_pending_events: {
    voucherId: text,
    sequence: integer,
    eventType: textOf<EventType>(),
    occurredAt: timestamptz,
    actorConnectedId: orNull(text),
    actorIsEmployee: orNull(boolean),
    data: json<EventContent["data"]>(),
  },
  select_overdue_seals: { voucherId: text },
  find_oldest_pending_age: { ageMs: bigint },
  seal_events: {},
  select_events_page: { ...STORED_EVENT, logIndex: orNull(bigint) },
  find_logged_event: LOGGED_EVENT,
  find_logged_redemption: LOGGED_EVENT,
  select_events_of_range: STORED_EVENT,
  select_logged_in_order: LOGGED_HASH,
  select_unlogged_events: UNLOGGED_EVENT,
  write_log_slots: {},
  next_log_batch: { id: bigint },
  insert_log_batch: {},
  select_canon_preserved_since: { canonPreservedSince: timestamptz },
});

/** An event together with its seal, and its slot in the log. */
export interface SealedEvent {
  event: EventContent;
  seal: Seal;
  logSlot: number;
}

/** Statements that append sealed events to the chains of locked vouchers. */
export function insertSealedEvents(sealed: readonly SealedEvent[]): PreparedStatements {
  if (sealed.length === 0) return [];
  const events = sealed.map(({ event }) => event);
  const seals = sealed.map(({ seal }) => seal);
  return [
    prepare(sql.insert_sealed_events, [
      ...columnsOf(events, "voucherId", "sequence", "eventType", "occurredAt", "actorConnectedId", "actorIsEmployee"),
      ...columnsOf(seals, "previousHash", "recordHash", "payload"),
      sealed.map(({ logSlot }) => logSlot),
    ]),
  ];
}

/** Statements that append Pending events to the chains of locked vouchers. */
export function insertPendingEvents(events: readonly EventContent[]): PreparedStatements {
  if (events.length === 0) return [];
  return [
    prepare(sql.insert_pending_events, [
      ...columnsOf(events, "voucherId", "sequence", "eventType", "occurredAt", "actorConnectedId", "actorIsEmployee"),
      events.map((event) => JSON.stringify(event.data)),
    ]),
  ];
}

/** The Pending events of locked vouchers, in order of voucher and sequence. */
export function selectPendingEvents(tx: Transaction, voucherIds: readonly string[]): Promise<EventContent[]> {
  return readRows(tx, sql.select_pending_events, [voucherIds]);
}

/** Vouchers with an event that has been Pending for longer than `ageMs`. Reads at most `limit` events, oldest first. */
export async function selectOverdueSeals(db: Queryable, ageMs: number, limit: number): Promise<string[]> {
  const rows = await readRows(db, sql.select_overdue_seals, [ageMs, limit]);
  return [...new Set(rows.map((row) => row.voucherId))];
}

/** Age of the oldest Pending event, in milliseconds; 0 when there is none. */
export async function findOldestPendingAge(db: Queryable): Promise<number> {
  return (await readRow(db, sql.find_oldest_pending_age, []))?.ageMs ?? 0;
}

/** Statements that seal Pending events of locked vouchers. */
export function writeSeals(sealed: readonly SealedEvent[]): PreparedStatements {
  if (sealed.length === 0) return [];
  const rows = sealed.map(({ event, seal, logSlot }) => ({ ...event, ...seal, logSlot }));
  const columns = columnsOf(rows, "voucherId", "sequence", "previousHash", "recordHash", "payload", "logSlot");
  return [prepare(sql.seal_events, columns)];
}

/** An event and its leaf in the log. */
export type LoggedEvent = Row<typeof LOGGED_EVENT>;

/** One event of a voucher, or null. */
export function findLoggedEvent(db: Queryable, voucherId: string, sequence: number): Promise<LoggedEvent | null> {
  return readRow(db, sql.find_logged_event, [voucherId, sequence]);
}

/** The event of an organization's redemption under a reference, or null. */
export function findLoggedRedemption(
  db: Queryable,
  organizationId: string,
  externalRef: string,
): Promise<LoggedEvent | null> {
  return readRow(db, sql.find_logged_redemption, [organizationId, externalRef]);
}

/** At most `limit` events of one voucher with a sequence greater than `after`, in order. */
export function selectEventsPage(
  db: Queryable,
  voucherId: string,
  after: number,
  limit: number,
): Promise<(StoredEvent & { logIndex: number | null })[]> {
  return readRows(db, sql.select_events_page, [voucherId, after, limit]);
}

/** All events of the vouchers with ids after `afterId` and up to `lastId`, in chain order. */
export function selectEventsOfRange(db: Queryable, afterId: string, lastId: string): Promise<StoredEvent[]> {
  return readRows(db, sql.select_events_of_range, [afterId, lastId]);
}

/** The hash and the leaf of a sealed event. */
export type LoggedHash = Row<typeof LOGGED_HASH>;

/** Rows that one FETCH reads from a cursor: a few megabytes. */
const FETCH_ROWS = 10_000;

/** The hashes of all sealed events in pages, in the order of their leaves; those without a leaf come last. */
export async function* readLoggedInOrder(tx: Queryable): AsyncGenerator<LoggedHash[]> {
  // With less memory, the server's sort writes and merges many small files.
  await tx.query("SET LOCAL work_mem = '64MB'");
  await tx.query(`DECLARE logged_in_order NO SCROLL CURSOR FOR ${sql.select_logged_in_order.text}`);
  for (let rows = FETCH_ROWS; rows === FETCH_ROWS; ) {
    const page = await tx.query<LoggedHash>(`FETCH ${FETCH_ROWS} FROM logged_in_order`);
    rows = page.rows.length;
    yield page.rows;
  }
  await tx.query("CLOSE logged_in_order");
}

export type UnloggedEvent = Row<typeof UNLOGGED_EVENT>;

/** Sealed events that belong to no batch of leaves, after this voucher and sequence: at most as many as a batch has leaves. */
export function selectUnloggedEvents(
  tx: Transaction,
  { voucherId, sequence }: Pick<UnloggedEvent, "voucherId" | "sequence">,
): Promise<UnloggedEvent[]> {
  return readRows(tx, sql.select_unlogged_events, [voucherId, sequence, BATCH_LEAVES_MAX]);
}

/** Statements that give sealed events their slots in a batch of leaves. */
export function writeLogSlots(events: readonly UnloggedEvent[], slots: readonly number[]): PreparedStatements {
  return [prepare(sql.write_log_slots, [...columnsOf(events, "voucherId", "sequence"), slots])];
}

/** The time since which this deployment stores the exact event payloads. */
export async function selectCanonPreservedSince(db: Queryable): Promise<Date> {
  return (await readRequiredRow(db, sql.select_canon_preserved_since, [])).canonPreservedSince;
}

/** Most leaves of a batch: the lowest twelve bits of a slot are the leaf's position in its batch. */
const BATCH_LEAVES_MAX = 4_096;

/** The leaves that a transaction adds to the log, in the order in which it seals its events. */
export interface LeafBatch {
  id: number;
  /** The `recordHash` of each event. */
  hashes: string[];
}

/** Opens the batch of a transaction. Must be sent after the statement that locks its vouchers. */
export async function openLeafBatch(tx: Transaction): Promise<LeafBatch> {
  return { id: (await readRequiredRow(tx, sql.next_log_batch, [])).id, hashes: [] };
}

/** Adds an event to a batch. Returns its slot: the batch and the leaf's position in it, as one number. */
export function addLeaf({ id, hashes }: LeafBatch, recordHash: string): number {
  if (hashes.length === BATCH_LEAVES_MAX) throw new Error(`a batch of the log has at most ${BATCH_LEAVES_MAX} leaves`);
  return id * BATCH_LEAVES_MAX + hashes.push(recordHash) - 1;
}

/** Statements that add a batch of leaves to the log. */
export function appendLeaves({ id, hashes }: LeafBatch): PreparedStatements {
  if (hashes.length === 0) return [];
  return [prepare(sql.insert_log_batch, [id, hashes.length, Buffer.from(hashes.join(""), "hex")])];
}
