import { setInterval } from "node:timers/promises";

/** Time between two looks. What has ended is seen within a second. Milliseconds. */
const LOOK_EVERY_MS = 400;

/**
 * Asks again and again, until the signal aborts, whether what a long act depends on has ended: its key or sign-in. A
 * question that fails is not an answer: the next one follows.
 * @returns the last answer; false while none is known.
 */
export function watchForEnd(hasEnded: () => Promise<boolean>, until: AbortSignal): () => boolean {
  let ended = false;
  const look = async () => {
    for await (const _ of setInterval(LOOK_EVERY_MS, null, { signal: until })) {
      ended ||= await hasEnded().catch(() => false);
    }
  };
  // It rejects when the signal aborts.
  void look().catch(() => undefined);
  return () => ended;
}
