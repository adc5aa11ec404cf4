import { isRetryable } from "../../db/transaction.ts";

/** Attempts to decide a whole batch before its items are tried one by one. */
const ATTEMPTS_MAX = 3;

/** Repeats a transaction that conflicted with another one, on the new state. */
export async function retryConflicts<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
