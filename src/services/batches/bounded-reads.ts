import pLimit from "p-limit";
import { AppError } from "../../contract/errors.ts";

/** Runs a read, or another call that is not batched, when a connection for such calls is free. The call must use one connection at a time. @throws AppError `overloaded`. */
export type BoundedReads = <T>(read: () => Promise<T>) => Promise<T>;

/** Bounds how many reads of one kind run and how many wait, so that a flood of them leaves connections to other work. */
export function openBoundedReads({
  connections,
  waitingMax,
}: {
  connections: number;
  waitingMax: number;
}): BoundedReads {
  const limit = pLimit(connections);
  return async (read) => {
    if (limit.pendingCount >= waitingMax) throw new AppError("overloaded");
    return limit(read);
  };
}
