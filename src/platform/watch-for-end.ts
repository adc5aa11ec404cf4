import { setInterval } from "node:timers/promises";

/** Time between two checks, so that an end is detected within a second. Milliseconds. */
const LOOK_EVERY_MS = 400;

/**
 * Checks repeatedly, until `until` aborts, whether the key or the sign-in on which a long act depends has ended.
 * Ignores a failed check, because another follows.
 * @returns a signal that aborts when a check has found the end.
 */
export function watchForEnd(hasEnded: () => Promise<boolean>, until: AbortSignal): AbortSignal {
  const ended = new AbortController();
  const look = async () => {
    for await (const _ of setInterval(LOOK_EVERY_MS, null, { signal: until })) {
      if ((await hasEnded().catch(() => false)) && !until.aborted) return ended.abort();
    }
  };
  // Ignores the error with which the loop ends when the signal aborts.
  void look().catch(() => undefined);
  return ended.signal;
}
