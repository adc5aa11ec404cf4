import pLimit from "p-limit";
import { AppError } from "../../contract/errors.ts";

/** Runs a read when a connection is free. The read uses one connection at a time. @throws AppError `overloaded`. */
export type BoundedReads = <T>(read: () => Promise<T>) => Promise<T>;

/** Bounds a kind of unbatched reads and how many of them wait, so that a flood leaves other connections free. */
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
