import { z } from "zod";

/**
 * An alert ends when its fault has not been found for this long. Each return of the fault within {@link REMEMBERED_MS}
 * doubles the time. Milliseconds.
 */
const ENDS_AFTER_MS = 60_000;
/** The maximum of the doubled time. Milliseconds. */
const ENDS_AFTER_MAX_MS = 3_600_000;
/** For how long an alert is remembered after its end. Milliseconds. */
const REMEMBERED_MS = 3_600_000;
/** Maximum number of open alerts. Further faults wait until one of these has ended. */
const ALERTS_MAX = 100;
/** Maximum number of attempts to send a message. */
const ATTEMPTS_MAX = 8;
/**
 * The time from the first attempt to the second. Each later wait is twice as long. Longer than an attempt takes.
 * Milliseconds.
 */
const RETRY_MS = 30_000;
/** Maximum wait between two attempts. Milliseconds. */
const RETRY_MAX_MS = 3_600_000;

/** The content of a message about a fault. */
const told = z.object({ severity: z.string(), what: z.string(), subject: z.string(), since: z.iso.datetime() });
export type ToldFault = z.output<typeof told>;

/** A fault about which messages are sent, from its beginning until some time after its end was sent. */
const alert = told.extend({
  /** Identifies the messages of this alert, because a receiver may get a message twice. */
  id: z.string(),
  /** Identifies the fault. */
  fault: z.string(),
  /** When a look first missed the fault; null while looks find it. */
  missingSince: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  sent: z.enum(["nothing", "begin", "end"]),
  /** The number of attempts to send the next message, and the earliest time of a further attempt. */
  attempts: z.int(),
  nextAt: z.iso.datetime(),
  /** Since when the attempts to send that message fail; null after an accepted message. */
  failingSince: z.iso.datetime().nullable(),
  /** How often the fault has returned soon after its end. */
  returns: z.int(),
});
type Alert = z.output<typeof alert>;

/** The state of all alerts, which the API processes share. */
export const alertState = z.object({
  /** Grows with each change. */
  version: z.int(),
  alerts: z.array(alert),
});
export type AlertState = z.output<typeof alertState>;

export const NO_ALERTS: AlertState = { version: 0, alerts: [] };

/** A fault that a look has found. */
export type FoundFault = ToldFault & { fault: string };

/** A message to send. */
export interface AlertMessage {
  /** The same for each attempt to send the message. */
  id: string;
  alert: Alert;
}

/**
 * Moves the times of a state that lie ahead to `now`. The database's clock may have been set back since they were
 * written, and no wait may last longer for that. The next attempt keeps its distance from the last one at most.
 */
function withoutFuture(state: AlertState, now: Date): AlertState {
  const atMost = (time: string, max: number) => (Date.parse(time) > max ? new Date(max).toISOString() : time);
  const past = (time: string | null) => time && atMost(time, now.getTime());
  return {
    ...state,
    alerts: state.alerts.map((one) => ({
      ...one,
      since: atMost(one.since, now.getTime()),
      missingSince: past(one.missingSince),
      endedAt: past(one.endedAt),
      failingSince: past(one.failingSince),
      nextAt: atMost(one.nextAt, now.getTime() + retryMs(one.attempts)),
    })),
  };
}

/**
 * Carries alerts from one look to the next. A fault that returns before its end was sent continues its alert. A fault
 * that returns soon after its end must then be gone for longer, so that a fault that comes and goes sends few messages.
 * @param red the red faults of a look.
 */
export function followFaults(
  state: AlertState,
  red: readonly FoundFault[],
  now: Date,
  makeId: () => string,
): AlertState {
  const { alerts } = withoutFuture(state, now);
  const found = new Map(red.map((one) => [one.fault, one]));
  const follow = (known: Alert): Alert => {
    const isOver = known.sent === "end";
    if (found.has(known.fault)) {
      if (isOver) return begin(found.get(known.fault) as FoundFault, now, makeId(), known.returns + 1);
      return known.missingSince === null ? known : { ...known, ...goOn(known, now) };
    }
    if (isOver || known.endedAt !== null) return known;
    const missingSince = known.missingSince ?? now.toISOString();
    if (passedMs(missingSince, now) < endsAfterMs(known)) return { ...known, missingSince };
    return { ...known, missingSince, endedAt: missingSince, ...firstAttempt(now) };
  };
  const known = new Set(alerts.map(({ fault }) => fault));
  const remembered = alerts.filter((one) => !mayForget(one, now)).map(follow);
  const begun = red.filter(({ fault }) => !known.has(fault)).map((one) => begin(one, now, makeId(), 0));
  return {
    ...state,
    alerts: [
      ...remembered,
      ...begun.slice(0, Math.max(0, ALERTS_MAX - remembered.filter(({ endedAt }) => endedAt === null).length)),
    ],
  };
}

function begin(found: FoundFault, now: Date, id: string, returns: number): Alert {
  const { fault, severity, what, subject, since } = found;
  const present = { missingSince: null, endedAt: null, sent: "nothing" } as const;
  return { id, fault, severity, what, subject, since, ...present, ...firstAttempt(now), failingSince: null, returns };
}

/** The time from one attempt to the next, after so many attempts. Milliseconds. */
const retryMs = (attempts: number) => (attempts === 0 ? 0 : Math.min(RETRY_MS * 2 ** (attempts - 1), RETRY_MAX_MS));

const firstAttempt = (now: Date) => ({ attempts: 0, nextAt: now.toISOString() });

/** Continues the alert of a fault that is found again. If the message about its end was due, it is no longer sent. */
function goOn({ endedAt }: Alert, now: Date): Partial<Alert> {
  return { missingSince: null, endedAt: null, ...(endedAt !== null && { ...firstAttempt(now), failingSince: null }) };
}

/** For how long a fault must be gone before its alert ends. Milliseconds. */
const endsAfterMs = ({ returns }: Alert) => Math.min(ENDS_AFTER_MS * 2 ** returns, ENDS_AFTER_MAX_MS);

const passedMs = (since: string, now: Date) => now.getTime() - Date.parse(since);

/** Whether an alert ended long ago, and its last message was sent or failed for good. */
function mayForget(alert: Alert, now: Date): boolean {
  const isDone = alert.sent === "end" || alert.attempts >= ATTEMPTS_MAX;
  return alert.endedAt !== null && isDone && passedMs(alert.endedAt, now) > REMEMBERED_MS + endsAfterMs(alert);
}

/**
 * Takes the messages that are due. Counts an attempt for each, so that no other process sends them at the same time. A
 * fault that ends before the message about its beginning was sent gets one message for both.
 */
export function takeDue(state: AlertState, now: Date): { state: AlertState; due: AlertMessage[] } {
  const due: AlertMessage[] = [];
  const alerts = withoutFuture(state, now).alerts.map((one): Alert => {
    const isSent = one.sent === (one.endedAt === null ? "begin" : "end");
    // While a fault lasts, attempts continue, because its receiver may be repaired.
    const isGivenUp = one.attempts >= ATTEMPTS_MAX && one.endedAt !== null;
    if (isSent || isGivenUp || passedMs(one.nextAt, now) < 0) return one;
    const nextAt = new Date(now.getTime() + retryMs(one.attempts + 1)).toISOString();
    const attempted = { ...one, attempts: one.attempts + 1, nextAt };
    due.push({ id: `${one.id}-${one.endedAt === null ? "begin" : "end"}`, alert: attempted });
    return attempted;
  });
  return { state: { ...state, alerts }, due };
}

/** Records that messages were accepted. */
export function recordSent(
  state: AlertState,
  results: readonly { message: AlertMessage; accepted: boolean }[],
  now: Date,
): AlertState {
  const known = new Map(results.map((result) => [result.message.alert.id, result]));
  const alerts = state.alerts.map((one): Alert => {
    const result = known.get(one.id);
    if (result === undefined) return one;
    if (!result.accepted) return { ...one, failingSince: one.failingSince ?? now.toISOString() };
    const sent = result.message.alert.endedAt === null ? "begin" : "end";
    return { ...one, sent, ...firstAttempt(now), failingSince: null };
  });
  return { ...state, alerts };
}

/**
 * Adds the alerts that a process sent before it could read the state. Leaves out alerts for faults that are open in the
 * state as well.
 */
export function mergeAlerts(state: AlertState, told: readonly Alert[]): AlertState {
  const lasting = new Set(state.alerts.flatMap(({ fault, endedAt }) => (endedAt === null ? [fault] : [])));
  const added = told.filter(({ fault }) => !lasting.has(fault));
  const replaced = new Set(added.map(({ fault }) => fault));
  const kept = state.alerts.filter(({ fault }) => !replaced.has(fault));
  return { ...state, alerts: [...kept, ...added].slice(0, ALERTS_MAX) };
}

/** Since when messages are not accepted; null if they are. */
export function failingSinceOf({ alerts }: AlertState): Date | null {
  const times = alerts.flatMap(({ failingSince }) => failingSince ?? []).toSorted();
  return times[0] === undefined ? null : new Date(times[0]);
}

/** The body of a message. `text` is for people, and the only field that Slack and Teams read. */
export function alertBody(
  { severity, what, subject, since, endedAt }: ToldFault & { endedAt: string | null },
  url: string,
) {
  const minute = (time: string) => `${time.slice(0, 16).replace("T", " ")} UTC`;
  const text =
    endedAt === null
      ? `${severity.toUpperCase()}: ${what} (${subject}), since ${minute(since)}. ${url}`
      : `ENDED: ${what} (${subject}), from ${minute(since)} to ${minute(endedAt)}. ${url}`;
  // In Slack, angle brackets make links and notify everyone in the channel.
  return { text: text.replace(/[<>\p{Cc}]/gu, " "), severity, what, subject, since, endedAt, url };
}
