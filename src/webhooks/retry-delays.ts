const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The delays between the ten attempts of a delivery, 75.6 hours in total. */
const RETRY_DELAYS_MS = [
  5 * SECOND,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
] as const;

/** Maximum random change of a delay, as a fraction, which spreads the retries after an outage. */
const JITTER = 0.2;
/** A receiver's `Retry-After` may extend a delay by at most this factor. */
const RETRY_AFTER_FACTOR_MAX = 2;

/**
 * The delay before the next attempt, in milliseconds. Null if there is none.
 * @param attempts the number of attempts before the failed one.
 * @param random from 0 to 1, for the jitter.
 */
export function retryDelayMs(attempts: number, retryAfterMs: number | null, random: number): number | null {
  const delayMs = RETRY_DELAYS_MS[attempts];
  if (delayMs === undefined) return null;
  const jitteredMs = delayMs * (1 - JITTER + 2 * JITTER * random);
  return Math.round(Math.max(jitteredMs, Math.min(retryAfterMs ?? 0, RETRY_AFTER_FACTOR_MAX * delayMs)));
}
