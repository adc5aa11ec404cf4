import pLimit from "p-limit";
import { AppError } from "../../contract/errors.ts";

/**
 * Runs a read as soon as one of its connections is free. The read uses one connection at a time.
 * @throws AppError `overloaded` when too many reads wait.
 */
export type BoundedReads = <T>(read: () => Promise<T>) => Promise<T>;

/**
 * Bounds one kind of unbatched reads, so that a flood of them leaves the pool's other connections free.
 * @param waitingMax reads that may wait for a connection.
 */
export function openBoundedReads({
  connections,
  waitingMax,
}: {
  connections: number;
  waitingMax: number;
}): BoundedReads {
  const limit = pLimit(connections);
  return async (read) => {
    if (limit.pendingCount >= waitingMax) {
      throw new AppError("overloaded");
    }
    return limit(read);
  };
}
