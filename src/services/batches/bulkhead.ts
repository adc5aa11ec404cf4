import pLimit from "p-limit";
import { AppError } from "../../contract/errors.ts";

/** Runs a call that is not batched when one of the kind's connections is free. The call must use one connection at a time. @throws AppError `overloaded`. */
export type Bulkhead = <T>(call: () => Promise<T>) => Promise<T>;

/** Bounds how many calls of one kind run and how many wait, so that a flood of them leaves connections to other work. */
export function openBulkhead({ connections, waitingMax }: { connections: number; waitingMax: number }): Bulkhead {
  const limit = pLimit(connections);
  return async (call) => {
    if (limit.pendingCount >= waitingMax) throw new AppError("overloaded");
    return limit(call);
  };
}
