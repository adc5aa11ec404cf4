import { isRetryable } from "../../db/transaction.ts";

/** Most attempts to commit a batch and then, if all have failed, to commit each of its items alone. */
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
