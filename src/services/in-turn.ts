import { setTimeout as sleep } from "node:timers/promises";
import type { LimitFunction } from "p-limit";

/**
 * Runs `work` in its turn behind `limit`, or gives up while it still waits for that turn. Work that has begun is waited for.
 * @param patienceMs how long to go on waiting as things stand; asked again whenever that much has passed. Milliseconds.
 * @param giveUp the result instead of the work's, or what throws.
 */
export async function inTurn<T>(
  limit: LimitFunction,
  work: () => Promise<T>,
  patienceMs: () => number,
  giveUp: () => T,
): Promise<T> {
  let state: "waiting" | "begun" | "given up" = "waiting";
  const result = limit(() => {
    if (state === "given up") return giveUp();
    state = "begun";
    return work();
  });
  if (limit.pendingCount === 0) return result;
  const outOfPatience = async (): Promise<T> => {
    for (let leftMs = patienceMs(); leftMs > 0; leftMs = patienceMs()) {
      await sleep(leftMs);
      if (state === "begun") return result;
    }
    state = "given up";
    return giveUp();
  };
  return Promise.race([result, outOfPatience()]);
}
