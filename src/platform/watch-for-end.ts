import { setInterval } from "node:timers/promises";

/** Time between two checks, so that an end is detected within a second. Milliseconds. */
const LOOK_EVERY_MS = 400;

/**
 * A long act depends on a key or a sign-in. Until `until` aborts, checks repeatedly whether that key or sign-in has
 * ended. A check that fails has no effect, because the next one follows.
 * @returns a signal that aborts when a check has found the end.
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
