import { ROW_EVENTS_MAX } from "../../core/chain/db/outbox.ts";
import {
  arrayOf,
  bigint,
  boolean,
  integer,
  orNull,
  type Row,
  smallint,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import { LATEST, timeOf, withLatest } from "../../platform/db/database-clock.ts";
import type { Queryable, Transaction } from "../../platform/db/pool.ts";
import { columnsOf, type PreparedStatements, Statements } from "../../platform/db/statements.ts";
import type { DeliveryFailure, DeliveryState } from "../api/webhook-deliveries.ts";
import type { WebhookEventType } from "../api/webhooks.ts";

const OUTBOX_ROW = { id: bigint, organizationId: text, events: integer };
export type OutboxRow = Row<typeof OUTBOX_ROW>;

/** A target, which is the endpoint of a delivery: its URL, and the data for signing its requests. */
const TARGET = {
  id: text,
  organizationId: text,
  url: text,
  /** The versions of the secret that sign requests now, latest first. */
  signingVersions: arrayOf(integer),
  /** Whether the target's last recorded attempt failed. */
  isFailing: boolean,
  now: timestamptz,
  sandbox: boolean,
};
export type WebhookTarget = Row<typeof TARGET>;

const DUE_DELIVERY = {
  eventId: text,
  voucherId: text,
  sequence: orNull(integer),
  eventType: textOf<WebhookEventType>(),
  attempts: integer,
  isReplay: boolean,
  /** Milliseconds since the event was written to the outbox. */
  ageMs: bigint,
  /** The next three columns are null for an event of a reservation. */
  occurredAt: orNull(timestamptz),
  recordHash: orNull(text),
  payload: orNull(text),
  /** The next two columns are null for a sealed event. */
  startedAt: orNull(timestamptz),
  expiresAt: orNull(timestamptz),
};
export type DueDelivery = Row<typeof DUE_DELIVERY>;

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
type ListedDelivery = Row<typeof LISTED_DELIVERY>;

const REPLAYABLE = { eventId: text, voucherId: text };

export const sql = new Statements(new URL("./webhook-deliveries.sql", import.meta.url));

export const tryFanOut = sql.requiredValue("try_fan_out", { locked: boolean });
export const selectOutbox = sql.rows("select_outbox", OUTBOX_ROW, { except: arrayOf(text), limit: integer });
export const selectOutboxOf = sql.rows("select_outbox_of", OUTBOX_ROW, { organizationId: text, limit: integer });
const selectTarget = sql.row("find_target", TARGET, { endpointId: text });
export const selectDueDeliveries = withLatest(
  sql.rows("select_due_deliveries", DUE_DELIVERY, {
    endpointId: text,
    except: arrayOf(text),
    limit: integer,
    ...LATEST,
  }),
);
export const readIsErased = sql.requiredValue(
  "read_is_erased",
  { isErased: boolean },
  { voucherId: text, sequence: integer },
);
export const selectTargetsWithDue = withLatest(
  sql.values("select_endpoints_with_due", { endpointId: text }, { limit: integer, ...LATEST }),
);
export const deleteOldDeliveries = withLatest(
  sql.execute("delete_old_deliveries", { days: integer, limit: integer, ...LATEST }),
);
export const deleteDeletedEndpoints = sql.execute("delete_deleted_endpoints");
export const measureWebhooks = sql.requiredRow(
  "measure_webhooks",
  {
    pending: integer,
    outbox: integer,
    oldestDueMs: bigint,
  },
  { limit: integer },
);
/** Waits for the locks of an organization's enabled targets. Afterwards {@link fanOutRows} finds the targets free. */
export const lockTargetsOf = sql.execute("lock_endpoints_of", { organizationId: text });
const lockFreeOf = sql.values("lock_free_endpoints_of", { id: text }, { organizationId: arrayOf(text) });
const selectEnabledOf = sql.rows(
  "select_enabled_endpoints_of",
  { id: text, organizationId: text },
  { organizationId: arrayOf(text) },
);
const insertDeliveries = withLatest(
  sql.values(
    "insert_deliveries",
    { endpointId: text },
    { outboxId: arrayOf(bigint), endpointId: arrayOf(text), rowEventsMax: bigint, ...LATEST },
  ),
);
const deleteOutbox = sql.execute("delete_outbox", { id: arrayOf(bigint) });
const lockRows = sql.execute("lock_endpoints", { endpointId: arrayOf(text) });
const lockFreeRows = sql.values("lock_free_endpoints", { id: text }, { endpointId: arrayOf(text) });
const selectTargets = sql.rows(
  "read_endpoints",
  {
    id: text,
    organizationId: text,
    enabled: boolean,
    failingSince: orNull(timestamptz),
    /** Number of consecutive failed attempts, counted up to FAILURES_SHOWN. */
    failures: smallint,
    now: timestamptz,
  },
  { endpointId: arrayOf(text) },
);
const updateAttempted = sql.prepare("record_attempts", {
  now: timestamptz,
  endpointId: arrayOf(text),
  eventId: arrayOf(text),
  attempts: arrayOf(integer),
  state: arrayOf(text),
  status: arrayOf(orNull(integer)),
  failure: arrayOf(orNull(text)),
  nextAttemptAt: arrayOf(orNull(timestamptz)),
});
const releaseNext = sql.prepare("release_next", {
  now: timestamptz,
  endpointId: arrayOf(text),
  voucherId: arrayOf(text),
});
const recordHealth = sql.prepare("record_health", {
  now: timestamptz,
  endpointId: arrayOf(text),
  failingSince: arrayOf(orNull(timestamptz)),
  disabledReason: arrayOf(orNull(text)),
  failures: arrayOf(smallint),
});
const lockDisabledEndpoint = sql.value("lock_disabled_endpoint", { id: text });
const endPending = sql.execute("end_pending_deliveries", { endpointId: text, limit: integer });
const selectPage = sql.rows("select_deliveries", LISTED_DELIVERY, {
  endpointId: text,
  state: arrayOf(text),
  before: timestamptz,
  beforeEventId: text,
  limit: integer,
});
const selectReplayableByTime = sql.rows("select_replayable_by_time", REPLAYABLE, {
  endpointId: text,
  from: timestamptz,
  to: timestamptz,
  limit: integer,
});
const selectReplayableById = sql.rows("select_replayable_by_id", REPLAYABLE, {
  endpointId: text,
  eventId: arrayOf(text),
});
const replayDeliveries = sql.execute("replay_deliveries", {
  now: timestamptz,
  endpointId: text,
  eventId: arrayOf(text),
});
const waitForEarlier = sql.execute("wait_for_earlier", { endpointId: text, voucherId: arrayOf(text) });

/**
 * Makes the deliveries of outbox rows and deletes the rows. If another transaction has locked one of an organization's
 * targets, skips all rows of the organization. Returns the targets with due deliveries, and the skipped organizations.
 */
export async function fanOutRows(
  tx: Transaction,
  rows: readonly OutboxRow[],
): Promise<{ due: string[]; locked: Set<string> }> {
  const organizations = [...new Set(rows.map(({ organizationId }) => organizationId))];
  // The lock is a separate, earlier statement, so that later statements see the changes of the lock's previous holder.
  const own = new Set(await lockFreeOf(tx, organizations));
  const enabled = await selectEnabledOf(tx, organizations);
  const locked = new Set(enabled.filter(({ id }) => !own.has(id)).map(({ organizationId }) => organizationId));
  const outboxId = rows.filter(({ organizationId }) => !locked.has(organizationId)).map(({ id }) => id);
  const due = await insertDeliveries(tx, { outboxId, endpointId: [...own], rowEventsMax: ROW_EVENTS_MAX });
  await deleteOutbox(tx, outboxId);
  return { due, locked };
}

/** Null if the target is disabled or deleted. */
export async function findTarget(db: Queryable, endpointId: string): Promise<WebhookTarget | null> {
  const target = await selectTarget(db, endpointId);
  return target && { ...target, now: timeOf(db, target.now) };
}

async function readTargets(tx: Transaction, endpointIds: readonly string[]) {
  const targets = await selectTargets(tx, endpointIds);
  return targets.map((target) => ({ ...target, now: timeOf(tx, target.now) }));
}

/** Locks targets, then reads them in a second statement, which sees all changes that were committed before the lock. */
export async function lockTargets(tx: Transaction, endpointIds: readonly string[]) {
  const [, targets] = await Promise.all([lockRows(tx, endpointIds), readTargets(tx, endpointIds)]);
  return targets;
}

/**
 * Like {@link lockTargets}, but skips targets that another transaction has locked and returns their ids in `locked`. A
 * deleted target is in neither result.
 */
export async function lockFreeTargets(tx: Transaction, endpointIds: readonly string[]) {
  const [ids, targets] = await Promise.all([lockFreeRows(tx, endpointIds), readTargets(tx, endpointIds)]);
  const [own, locked] = [new Set(ids), new Set<string>()];
  for (const { id } of targets) if (!own.has(id)) locked.add(id);
  return { targets: targets.filter(({ id }) => own.has(id)), locked };
}

/** An attempt and its result. */
interface RecordedAttempt {
  endpointId: string;
  eventId: string;
  voucherId: string;
  /** The number of attempts before this one. */
  attempts: number;
  state: DeliveryState;
  status: number | null;
  failure: DeliveryFailure | null;
  /** Milliseconds until the next attempt. Null if there is none. */
  delayMs: number | null;
}

/** The health of a target after its attempts. */
interface TargetHealth {
  endpointId: string;
  failingSince: Date | null;
  failures: number;
  disabledReason: "gone" | "failing" | null;
}

/** Statements that record attempts of deliveries to locked targets, and make the vouchers' next deliveries due. */
export function recordAttempts(
  attempts: readonly RecordedAttempt[],
  health: readonly TargetHealth[],
  now: Date,
): PreparedStatements {
  const columns = columnsOf(attempts, "endpointId", "eventId", "attempts", "state", "status", "failure");
  const nextAttemptAt = attempts.map(({ delayMs }) => (delayMs === null ? null : new Date(now.getTime() + delayMs)));
  const finished = attempts.filter(({ state }) => state !== "Pending");
  const writes = [updateAttempted({ now, ...columns, nextAttemptAt })];
  if (finished.length > 0) writes.push(releaseNext({ now, ...columnsOf(finished, "endpointId", "voucherId") }));
  const healthColumns = columnsOf(health, "endpointId", "failingSince", "disabledReason", "failures");
  if (health.length > 0) writes.push(recordHealth({ now, ...healthColumns }));
  return writes;
}

/** Ends at most `limit` Pending deliveries of one disabled target. Returns their number. */
export async function endPendingDeliveries(tx: Transaction, limit: number): Promise<number> {
  const endpointId = await lockDisabledEndpoint(tx);
  return endpointId === null ? 0 : endPending(tx, { endpointId, limit });
}

/** A position in the list of deliveries, newest first. */
export interface DeliveryPosition {
  createdAt: Date;
  eventId: string;
}

/** At most `limit` deliveries of a target in these states that follow a position in the list, newest first. */
export function selectDeliveries(
  db: Queryable,
  endpointId: string,
  states: readonly DeliveryState[],
  after: DeliveryPosition,
  limit: number,
): Promise<ListedDelivery[]> {
  return selectPage(db, { endpointId, state: states, before: after.createdAt, beforeEventId: after.eventId, limit });
}

/** Which deliveries to send again: those of events in a period, or those with these event ids. */
type ReplayChoice = { from: Date; to: Date } | { eventIds: readonly string[] };

/** Makes at most `limit` finished deliveries of a locked target Pending again. Returns their number. */
export async function replayFinished(
  tx: Transaction,
  endpointId: string,
  now: Date,
  choice: ReplayChoice,
  limit: number,
): Promise<number> {
  const chosen =
    "eventIds" in choice
      ? await selectReplayableById(tx, { endpointId, eventId: choice.eventIds.slice(0, limit) })
      : await selectReplayableByTime(tx, { endpointId, from: choice.from, to: choice.to, limit });
  if (chosen.length === 0) return 0;
  const eventIds = chosen.map(({ eventId }) => eventId);
  const vouchers = [...new Set(chosen.map(({ voucherId }) => voucherId))];
  await replayDeliveries(tx, { now, endpointId, eventId: eventIds });
  await waitForEarlier(tx, { endpointId, voucherId: vouchers });
  await tx.query(releaseNext({ now, endpointId: Array(vouchers.length).fill(endpointId), voucherId: vouchers }));
  return chosen.length;
}
