import { setTimeout as sleep } from "node:timers/promises";
import type { LimitFunction } from "p-limit";

/**
 * Runs `work` when `limit` has a free slot, or calls `giveUp` if no slot becomes free in time. Work that has started is always awaited.
 * @param remainingMs Returns how many more milliseconds to wait for a slot. Called again when that time has passed; it may then allow more.
 */
export async function runInTurn<T>(
  limit: LimitFunction,
  work: () => Promise<T>,
  remainingMs: () => number,
  giveUp: () => T,
): Promise<T> {
  let state: "waiting" | "started" | "given up" = "waiting";
  const result = limit(() => {
    if (state === "given up") return giveUp();
    state = "started";
    return work();
  });
  if (limit.pendingCount === 0) return result;
  const timeOut = async (): Promise<T> => {
    for (let leftMs = remainingMs(); leftMs > 0; leftMs = remainingMs()) {
      await sleep(leftMs);
      if (state === "started") return result;
    }
    state = "given up";
    return giveUp();
  };
  return Promise.race([result, timeOut()]);
}
