import pLimit from "p-limit";
import { AppError } from "../domain/errors.ts";

/** Connections of a process for reads that nobody needs a key for: they must leave the others to partners, however many come. */
const CONNECTIONS = 3;
/** Reads that may wait for one: a few seconds' worth of the largest pages. */
const WAITING_MAX = 50;

/**
 * Runs a read that nobody needs a key for when it is its turn.
 * @throws AppError `overloaded`.
 */
export type PublicReads = <T>(read: () => Promise<T>) => Promise<T>;

/** The public reads of an API process. */
export function openPublicReads(): PublicReads {
  const turns = pLimit(CONNECTIONS);
  return async (read) => {
    if (turns.pendingCount >= WAITING_MAX) {
      throw new AppError("overloaded", "The service is busy. Please try again.", { retryAfterSeconds: 1 });
    }
    return turns(read);
  };
}
