import { retryDelayMs } from "./retry-delays.ts";
import { FAILING_MAX_DAYS, FAILURES_SHOWN } from "./webhook-limits.ts";

const FAILING_MAX_MS = FAILING_MAX_DAYS * 24 * 3_600_000;

/** The result of one request to a target. */
export type AttemptResult<Failure extends string> =
  | { status: number; failure: null }
  | { status: number | null; failure: Failure; retryAfterMs: number | null };

/** Stands for the result when nothing was sent because the event's payload was erased. */
export const ERASED = "erased";

/** The state of a delivery after an attempt. */
export interface DecidedAttempt {
  state: "Pending" | "Delivered" | "Failed" | "Erased";
  /** The wait until the next attempt, in milliseconds. Null if there is none. */
  delayMs: number | null;
}

/** Whether the receiver has asked for no further requests. */
export function isGone(result: { status: number | null }): boolean {
  return result.status === 410;
}

/**
 * Decides the new state of a delivery after an attempt.
 * @param attempts the number of attempts before this one.
 * @param random from 0 to 1, for the jitter.
 */
export function decideAttempt(
  attempts: number,
  result: AttemptResult<string> | typeof ERASED,
  random: number,
): DecidedAttempt {
  if (result === ERASED) return { state: "Erased", delayMs: null };
  if (result.failure === null) return { state: "Delivered", delayMs: null };
  const delayMs = isGone(result) ? null : retryDelayMs(attempts, result.retryAfterMs, random);
  return { state: delayMs === null ? "Failed" : "Pending", delayMs };
}

/** The health of a target. */
interface Health {
  enabled: boolean;
  /** The time of the first failure since the last success. */
  failingSince: Date | null;
  /** The number of failures since `failingSince`, counted up to {@link FAILURES_SHOWN}. */
  failures: number;
}

/** Decides the health of a target from its attempts, in the order of their ends. Null if it does not change. */
export function decideHealth(
  { enabled, failingSince, failures }: Health,
  results: readonly { status: number | null; failure: string | null }[],
  now: Date,
): (Omit<Health, "enabled"> & { disabledReason: "gone" | "failing" | null }) | null {
  let since = failingSince;
  let count = failures;
  for (const { failure } of results) {
    since = failure === null ? null : (since ?? now);
    count = failure === null ? 0 : Math.min(count + 1, FAILURES_SHOWN);
  }
  const failing = since !== null && now.getTime() - since.getTime() >= FAILING_MAX_MS;
  const reason = results.some((result) => result.failure !== null && isGone(result))
    ? "gone"
    : failing
      ? "failing"
      : null;
  const disabledReason = enabled ? reason : null;
  return since?.getTime() === failingSince?.getTime() && count === failures && disabledReason === null
    ? null
    : { failingSince: since, failures: count, disabledReason };
}
