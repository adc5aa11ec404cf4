import { setInterval } from "node:timers/promises";

/** Time between two checks, so that an end is noticed within a second. Milliseconds. */
const LOOK_EVERY_MS = 400;

/**
 * Checks again and again, until the signal aborts, whether the key or sign-in that a long act depends on has ended. A
 * check that fails has no effect: the next check follows.
 * @returns a signal that aborts once a check has found an end.
 */
export function watchForEnd(hasEnded: () => Promise<boolean>, until: AbortSignal): AbortSignal {
  const ended = new AbortController();
  const look = async () => {
    for await (const _ of setInterval(LOOK_EVERY_MS, null, { signal: until })) {
      if ((await hasEnded().catch(() => false)) && !until.aborted) return ended.abort();
    }
  };
  // The loop rejects when the signal aborts.
  void look().catch(() => undefined);
  return ended.signal;
}
