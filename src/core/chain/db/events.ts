import {
  arrayOf,
  bigint,
  boolean,
  bytea,
  integer,
  json,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import type { Queryable, Transaction } from "../../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../../platform/db/statements.ts";
import type { EventContent, EventType, Seal, StoredEvent } from "../chain.ts";

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
  erasedBy: orNull(integer),
};

/** An event as responses show it. */
export const SEEN_EVENT = { ...STORED_EVENT, logIndex: orNull(bigint) };

/** The hash and the leaf of a sealed event. */
const LOGGED_HASH = {
  voucherId: text,
  sequence: integer,
  recordHash: bytea,
  /** Whether the event belongs to a leaf batch, which may still wait for its position in the log. */
  hasSlot: boolean,
  /** Null if the event has a payload. Otherwise, whether a later sealed event lists this event as erased. */
  isErased: orNull(boolean),
  logIndex: orNull(bigint),
  /**
   * While the event's leaf batch waits for its position in the log: the hash that the batch has for the event, or empty
   * if it has none. Null if the batch does not wait.
   */
  waitingHash: orNull(bytea),
};
export type LoggedHash = Row<typeof LOGGED_HASH>;

/** A sealed event that belongs to no leaf batch yet. The hash is in hex. */
const UNLOGGED_EVENT = { voucherId: text, sequence: integer, recordHash: text };
type UnloggedEvent = Row<typeof UNLOGGED_EVENT>;

/** An event and its leaf in the log. */
const LOGGED_EVENT = {
  voucherId: text,
  sequence: integer,
  payload: orNull(text),
  recordHash: orNull(bytea),
  logIndex: orNull(bigint),
};
export type LoggedEvent = Row<typeof LOGGED_EVENT>;

export const sql = new Statements(new URL("./events.sql", import.meta.url));

export const selectPendingEvents = sql.rows(
  "select_pending_events",
  {
    voucherId: text,
    sequence: integer,
    eventType: textOf<EventType>(),
    occurredAt: timestamptz,
    actorConnectedId: orNull(text),
    actorIsEmployee: orNull(boolean),
    data: json<EventContent["data"]>(),
  },
  { voucherId: arrayOf(text) },
);
/** The age in milliseconds. 0 if no event is Pending. */
export const findOldestPendingAge = sql.requiredValue("find_oldest_pending_age", { ageMs: bigint });
export const findLoggedEvent = sql.row("find_logged_event", LOGGED_EVENT, { voucherId: text, sequence: integer });
export const findLoggedRedemption = sql.row("find_logged_redemption", LOGGED_EVENT, {
  organizationId: text,
  externalRef: text,
});
export const selectEventsPage = sql.rows("select_events_page", SEEN_EVENT, {
  voucherId: text,
  after: integer,
  limit: integer,
});
export const selectEventsOfRange = sql.rows("select_events_of_range", STORED_EVENT, { after: text, last: text });
export const selectCanonPreservedSince = sql.requiredValue("select_canon_preserved_since", {
  canonPreservedSince: timestamptz,
});
const selectOverdueEvents = sql.values("select_overdue_seals", { voucherId: text }, { ageMs: integer, limit: integer });
const selectUnlogged = sql.rows("select_unlogged_events", UNLOGGED_EVENT, {
  afterVoucherId: text,
  afterSequence: integer,
  limit: integer,
});
const selectLoggedInOrder = sql.prepare("select_logged_in_order", {}, LOGGED_HASH);
const nextLogBatch = sql.requiredValue("next_log_batch", { id: bigint });
const insertTlogBatch = sql.prepare("insert_log_batch", { id: bigint, leaves: integer, hashes: bytea });
const insertSealed = sql.prepare("insert_sealed_events", {
  voucherId: arrayOf(text),
  sequence: arrayOf(integer),
  eventType: arrayOf(text),
  occurredAt: arrayOf(timestamptz),
  actorConnectedId: arrayOf(orNull(text)),
  actorIsEmployee: arrayOf(orNull(boolean)),
  previousHash: arrayOf(text),
  recordHash: arrayOf(text),
  payload: arrayOf(text),
  logSlot: arrayOf(bigint),
});
const insertPending = sql.prepare("insert_pending_events", {
  voucherId: arrayOf(text),
  sequence: arrayOf(integer),
  eventType: arrayOf(text),
  occurredAt: arrayOf(timestamptz),
  actorConnectedId: arrayOf(orNull(text)),
  actorIsEmployee: arrayOf(orNull(boolean)),
  data: arrayOf(text),
});
const sealEvents = sql.prepareAll("seal_events", {
  voucherId: text,
  sequence: integer,
  previousHash: text,
  recordHash: text,
  payload: text,
  logSlot: bigint,
});

/** An event together with its seal. {@link addLeaf} makes its `logSlot`. */
export interface SealedEvent {
  event: EventContent;
  seal: Seal;
  logSlot: number;
}

function contentColumns(events: readonly EventContent[]) {
  return columnsOf(events, "voucherId", "sequence", "eventType", "occurredAt", "actorConnectedId", "actorIsEmployee");
}

/** Statements that append sealed events to the chains of locked vouchers. */
export function insertSealedEvents(sealed: readonly SealedEvent[]): PreparedStatements {
  if (sealed.length === 0) return [];
  const seals = sealed.map(({ seal, logSlot }) => ({ ...seal, logSlot }));
  return [
    insertSealed({
      ...contentColumns(sealed.map(({ event }) => event)),
      ...columnsOf(seals, "previousHash", "recordHash", "payload", "logSlot"),
    }),
  ];
}

/** Statements that append Pending events to the chains of locked vouchers. */
export function insertPendingEvents(events: readonly EventContent[]): PreparedStatements {
  if (events.length === 0) return [];
  const data = events.map((event) => JSON.stringify(event.data));
  return [insertPending({ ...contentColumns(events), data })];
}

/** Vouchers with an event that has been Pending for longer than `ageMs`. Reads at most `limit` events, oldest first. */
export async function selectOverdueSeals(db: Queryable, ageMs: number, limit: number): Promise<string[]> {
  return [...new Set(await selectOverdueEvents(db, { ageMs, limit }))];
}

/** Statements that seal Pending events of locked vouchers. */
export function writeSeals(sealed: readonly SealedEvent[]): PreparedStatements {
  return sealEvents(sealed.map(({ event, seal, logSlot }) => ({ ...event, ...seal, logSlot })));
}

/** Rows that one FETCH reads from a cursor: a few megabytes. */
const FETCH_ROWS = 10_000;

/** The hashes of all sealed events in pages, in the order of their leaves. Events without a leaf come last. */
export async function* readLoggedInOrder(tx: Queryable): AsyncGenerator<LoggedHash[]> {
  // With the default memory, the server's sort would write and merge many small files.
  await tx.query("SET LOCAL work_mem = '64MB'");
  await tx.query(`DECLARE logged_in_order NO SCROLL CURSOR FOR ${selectLoggedInOrder().text}`);
  for (let rows = FETCH_ROWS; rows === FETCH_ROWS; ) {
    const page = await tx.query<LoggedHash>(`FETCH ${FETCH_ROWS} FROM logged_in_order`);
    rows = page.rows.length;
    yield page.rows;
  }
  await tx.query("CLOSE logged_in_order");
}

/**
 * The next sealed events, after this voucher and sequence, that belong to no leaf batch. At most as many as fit in one
 * batch.
 */
export function selectUnloggedEvents(
  tx: Transaction,
  { voucherId, sequence }: Pick<UnloggedEvent, "voucherId" | "sequence">,
): Promise<UnloggedEvent[]> {
  return selectUnlogged(tx, { afterVoucherId: voucherId, afterSequence: sequence, limit: BATCH_LEAVES_MAX });
}

/** Statements that record to which leaf batch sealed events belong, and their position in the batch. */
export const writeTlogSlots = sql.prepareAll(
  "write_log_slots",
  { voucherId: text, sequence: integer },
  { logSlot: arrayOf(bigint) },
);

/** Maximum number of leaves in a leaf batch. A `logSlot`'s lowest twelve bits are the leaf's position in its batch. */
const BATCH_LEAVES_MAX = 4_096;

/** The leaves that a transaction adds to the log, in the order in which it seals its events. */
export interface LeafBatch {
  id: number;
  /** The `recordHash` of each event. */
  hashes: string[];
}

/** Opens the leaf batch of a transaction. Call it only after sending the statement that locks the vouchers. */
export async function openLeafBatch(tx: Transaction): Promise<LeafBatch> {
  return { id: await nextLogBatch(tx), hashes: [] };
}

/** Adds an event to a leaf batch. Returns its `logSlot`: the batch's id, and the leaf's position in the batch. */
export function addLeaf({ id, hashes }: LeafBatch, recordHash: string): number {
  if (hashes.length === BATCH_LEAVES_MAX) throw new Error(`a batch of the log has at most ${BATCH_LEAVES_MAX} leaves`);
  return id * BATCH_LEAVES_MAX + hashes.push(recordHash) - 1;
}

/** Statements that add a leaf batch to the log. */
export function appendLeaves({ id, hashes }: LeafBatch): PreparedStatements {
  if (hashes.length === 0) return [];
  return [insertTlogBatch({ id, leaves: hashes.length, hashes: Buffer.from(hashes.join(""), "hex") })];
}
