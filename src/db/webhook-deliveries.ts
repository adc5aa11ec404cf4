import type { DeliveryFailure, DeliveryState } from "../contract/webhook-deliveries.ts";
import type { WebhookEventType } from "../contract/webhooks.ts";
import { arrayOf, bigint, boolean, integer, orNull, type Row, smallint, text, textOf, timestamptz } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import {
  columnsOf,
  execute,
  loadStatements,
  type PreparedStatements,
  prepare,
  readRequiredRow,
  readRow,
  readRows,
} from "./statements.ts";

const TARGET = {
  id: text,
  organizationId: text,
  url: text,
  /** The versions of the secret that sign now, the latest first. */
  signingVersions: arrayOf(integer),
  /** Whether the endpoint's last recorded attempt failed. */
  isFailing: boolean,
  now: timestamptz,
  sandbox: boolean,
};

const DUE_DELIVERY = {
  eventId: text,
  voucherId: text,
  sequence: orNull(integer),
  eventType: textOf<WebhookEventType>(),
  /** Attempts so far. */
  attempts: integer,
  isReplay: boolean,
  /** Milliseconds since its event was written to the outbox. */
  ageMs: bigint,
  /** These three are null for an event of a reservation. */
  occurredAt: orNull(timestamptz),
  recordHash: orNull(text),
  payload: orNull(text),
  /** These two are null for a sealed event. */
  startedAt: orNull(timestamptz),
  expiresAt: orNull(timestamptz),
};

const ENDPOINT_STATE = {
  id: text,
  organizationId: text,
  enabled: boolean,
  failingSince: orNull(timestamptz),
  /** Failed attempts in a row, counted up to three. */
  failures: smallint,
  now: timestamptz,
};

const LISTED_DELIVERY = {
  eventId: text,
  eventType: textOf<WebhookEventType>(),
  voucherId: text,
  sequence: orNull(integer),
  state: textOf<DeliveryState>(),
  attempts: integer,
  nextAttemptAt: orNull(timestamptz),
  lastStatus: orNull(integer),
  lastFailure: orNull(textOf<DeliveryFailure>()),
  createdAt: timestamptz,
  finishedAt: orNull(timestamptz),
};

const REPLAYABLE = { eventId: text, voucherId: text };
const BACKLOG = { pending: integer, outbox: integer, oldestDueMs: bigint };

export const sql = loadStatements(new URL("./webhook-deliveries.sql", import.meta.url), {
  try_fan_out: { locked: boolean },
  select_outbox: { id: bigint, organizationId: text, events: integer },
  lock_endpoints_of: { id: text },
  insert_deliveries: { endpointId: text },
  delete_outbox: {},
  find_target: TARGET,
  select_due_deliveries: DUE_DELIVERY,
  lock_endpoints: { id: text },
  read_endpoints: ENDPOINT_STATE,
  record_attempts: {},
  release_next: {},
  record_health: {},
  select_endpoints_with_due: { endpointId: text },
  lock_disabled_endpoint: { id: text },
  end_pending_deliveries: {},
  delete_old_deliveries: {},
  delete_deleted_endpoints: {},
  select_deliveries: LISTED_DELIVERY,
  select_replayable_by_time: REPLAYABLE,
  select_replayable_by_id: REPLAYABLE,
  replay_deliveries: {},
  wait_for_earlier: {},
  measure_webhooks: BACKLOG,
});

/** Locks the fan-out until the end of the transaction. False: another process has it. */
export async function tryFanOut(tx: Transaction): Promise<boolean> {
  return (await readRequiredRow(tx, sql.try_fan_out, [])).locked;
}

export type OutboxRow = Row<typeof sql.select_outbox.columns>;

/** The oldest `limit` rows of the outbox. */
export function selectOutbox(tx: Transaction, limit: number): Promise<OutboxRow[]> {
  return readRows(tx, sql.select_outbox, [limit]);
}

/** Makes the deliveries of outbox rows and deletes the rows. Returns the endpoints with due deliveries. */
export async function fanOutRows(tx: Transaction, rows: readonly OutboxRow[]): Promise<string[]> {
  const ids = rows.map(({ id }) => id);
  const organizations = [...new Set(rows.map(({ organizationId }) => organizationId))];
  // Lock in an earlier statement, so that the next one sees every delivery that a lock's last holder has finished.
  const endpoints = await readRows(tx, sql.lock_endpoints_of, [organizations]);
  const due = await readRows(tx, sql.insert_deliveries, [ids, endpoints.map(({ id }) => id)]);
  await execute(tx, sql.delete_outbox, [ids]);
  return due.map(({ endpointId }) => endpointId);
}

/** An endpoint's URL, and what signs its requests. */
export type WebhookTarget = Row<typeof TARGET>;

/** An enabled endpoint, or null. */
export function findTarget(db: Queryable, endpointId: string): Promise<WebhookTarget | null> {
  return readRow(db, sql.find_target, [endpointId]);
}

export type DueDelivery = Row<typeof DUE_DELIVERY>;

/** At most `limit` due deliveries of an endpoint, the longest due first, without those in `except`. */
export function selectDueDeliveries(
  db: Queryable,
  endpointId: string,
  except: readonly string[],
  limit: number,
): Promise<DueDelivery[]> {
  return readRows(db, sql.select_due_deliveries, [endpointId, except, limit]);
}

type EndpointState = Row<typeof ENDPOINT_STATE>;

/** Locks endpoints, then reads them in a second statement, which sees all changes from before the lock. */
export async function lockEndpoints(tx: Transaction, endpointIds: readonly string[]): Promise<EndpointState[]> {
  const [, endpoints] = await Promise.all([
    readRows(tx, sql.lock_endpoints, [endpointIds]),
    readRows(tx, sql.read_endpoints, [endpointIds]),
  ]);
  return endpoints;
}

/** An attempt and what follows from it. */
interface RecordedAttempt {
  endpointId: string;
  eventId: string;
  voucherId: string;
  /** Attempts before this one. */
  attempts: number;
  state: DeliveryState;
  status: number | null;
  failure: DeliveryFailure | null;
  /** Milliseconds until the next attempt; null when none follows. */
  delayMs: number | null;
}

/** The health of an endpoint after its attempts. */
interface EndpointHealth {
  endpointId: string;
  failingSince: Date | null;
  failures: number;
  disabledReason: "gone" | "failing" | null;
}

/** Statements that record attempts of deliveries of locked endpoints, and release the next ones of their vouchers. */
export function recordAttempts(
  attempts: readonly RecordedAttempt[],
  health: readonly EndpointHealth[],
  now: Date,
): PreparedStatements {
  const columns = columnsOf(attempts, "endpointId", "eventId", "attempts", "state", "status", "failure");
  const next = attempts.map(({ delayMs }) => (delayMs === null ? null : new Date(now.getTime() + delayMs)));
  const finished = attempts.filter(({ state }) => state !== "Pending");
  const writes = [prepare(sql.record_attempts, [now, ...columns, next])];
  if (finished.length > 0) {
    writes.push(prepare(sql.release_next, [now, ...columnsOf(finished, "endpointId", "voucherId")]));
  }
  if (health.length > 0) {
    writes.push(
      prepare(sql.record_health, [
        now,
        ...columnsOf(health, "endpointId", "failingSince", "disabledReason", "failures"),
      ]),
    );
  }
  return writes;
}

/** At most `limit` enabled endpoints with deliveries that are due. */
export async function selectEndpointsWithDue(db: Queryable, limit: number): Promise<string[]> {
  return (await readRows(db, sql.select_endpoints_with_due, [limit])).map(({ endpointId }) => endpointId);
}

/** Ends at most `limit` Pending deliveries of one disabled endpoint; returns how many. */
export async function endPendingDeliveries(tx: Transaction, limit: number): Promise<number> {
  const endpoint = await readRow(tx, sql.lock_disabled_endpoint, []);
  return endpoint === null ? 0 : execute(tx, sql.end_pending_deliveries, [endpoint.id, limit]);
}

/** Deletes at most `limit` finished deliveries that are older than `days` or whose endpoint is deleted; returns how many. */
export function deleteOldDeliveries(db: Queryable, days: number, limit: number): Promise<number> {
  return execute(db, sql.delete_old_deliveries, [days, limit]);
}

/** Deletes the rows of deleted endpoints that have no delivery left. */
export function deleteDeletedEndpoints(db: Queryable): Promise<number> {
  return execute(db, sql.delete_deleted_endpoints, []);
}

/** A position in the list of deliveries, which runs from the newest to the oldest. */
export interface DeliveryPosition {
  createdAt: Date;
  eventId: string;
}

export type ListedDelivery = Row<typeof LISTED_DELIVERY>;

/** At most `limit` deliveries of an endpoint in these states that come after a position, newest first. */
export function selectDeliveries(
  db: Queryable,
  endpointId: string,
  states: readonly DeliveryState[],
  after: DeliveryPosition,
  limit: number,
): Promise<ListedDelivery[]> {
  return readRows(db, sql.select_deliveries, [endpointId, states, after.createdAt, after.eventId, limit]);
}

/** Which deliveries to send again: those of events in a period, or those with these ids. */
export type ReplayChoice = { from: Date; to: Date } | { eventIds: readonly string[] };

/** Starts finished deliveries of a locked endpoint again, at most `limit`; returns how many. */
export async function replayFinished(
  tx: Transaction,
  endpointId: string,
  now: Date,
  choice: ReplayChoice,
  limit: number,
): Promise<number> {
  const chosen =
    "eventIds" in choice
      ? await readRows(tx, sql.select_replayable_by_id, [endpointId, choice.eventIds.slice(0, limit)])
      : await readRows(tx, sql.select_replayable_by_time, [endpointId, choice.from, choice.to, limit]);
  if (chosen.length === 0) return 0;
  const vouchers = [...new Set(chosen.map(({ voucherId }) => voucherId))];
  await execute(tx, sql.replay_deliveries, [now, endpointId, chosen.map(({ eventId }) => eventId)]);
  await execute(tx, sql.wait_for_earlier, [endpointId, vouchers]);
  await execute(tx, sql.release_next, [now, vouchers.map(() => endpointId), vouchers]);
  return chosen.length;
}

/** Unfinished deliveries and outbox rows. */
type WebhookBacklog = Row<typeof BACKLOG>;

/** Measures the backlog; each count stops at `limit`. */
export function measureWebhooks(db: Queryable, limit: number): Promise<WebhookBacklog> {
  return readRequiredRow(db, sql.measure_webhooks, [limit]);
}
