import { isRetryable } from "../../db/transaction.ts";

/** Most attempts in one call. A batch that fails is then split, and each item gets as many. */
const ATTEMPTS_MAX = 3;

/** Runs a transaction, and runs it again after a conflict with another one. `run` must read its state in the transaction. */
export async function retryConflicts<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
