import type pg from "pg";
import { Batcher } from "../platform/batching/batcher.ts";
import { countAvailable } from "./db/listings.ts";

/** Maximum number of batches in one statement. A count takes milliseconds, so the statement takes less than 0.1 s. */
const BATCH_MAX = 16;
/** Maximum number of waiting counts in one process. */
const WAITING_MAX = 10_000;
/** When a count of this age is read, it is still shown, and the batch is counted again. Milliseconds. */
const RECOUNT_AFTER_MS = 10_000;
/** Maximum age of a count that is shown. Milliseconds. */
const AGE_MAX_MS = 20_000;
/** Maximum number of counts that a process keeps. */
const KEPT_MAX = 10_000;

interface Kept {
  available: number;
  countedAt: number;
}

/**
 * The number of vouchers of each listed batch that can be bought. A batch is counted at most every ten seconds, even if
 * pages are read more often. One connection counts for all callers.
 */
export class KeptCounts {
  readonly #kept = new Map<string, Kept>();
  readonly #counting = new Map<string, Promise<number>>();
  readonly #batcher: Batcher<string, number>;

  constructor({ pool }: { pool: pg.Pool }) {
    this.#batcher = new Batcher(
      async (batchIds) => {
        const counted = new Map(
          (await countAvailable(pool, batchIds)).map(({ batchId, available }) => [batchId, available]),
        );
        return batchIds.map((batchId) => counted.get(batchId) ?? 0);
      },
      { batchMax: BATCH_MAX, waitingMax: WAITING_MAX },
    );
  }

  /** The count of a batch, at most 1 001 and at most 20 seconds old. @throws BatcherFull. */
  async read(batchId: string): Promise<number> {
    const kept = this.#kept.get(batchId);
    const ageMs = performance.now() - (kept?.countedAt ?? Number.NEGATIVE_INFINITY);
    if (kept === undefined || ageMs > AGE_MAX_MS) return this.#count(batchId);
    // The page does not wait for the new count. If it fails, a later page counts again, or waits for a count.
    if (ageMs > RECOUNT_AFTER_MS) this.#count(batchId).catch(() => undefined);
    return kept.available;
  }

  close(): Promise<void> {
    return this.#batcher.close();
  }

  #count(batchId: string): Promise<number> {
    const running = this.#counting.get(batchId);
    if (running !== undefined) return running;
    const count = this.#batcher.submit(batchId).then((available) => {
      if (this.#kept.size >= KEPT_MAX) this.#kept.clear();
      this.#kept.set(batchId, { available, countedAt: performance.now() });
      return available;
    });
    const counted = count.finally(() => this.#counting.delete(batchId));
    this.#counting.set(batchId, counted);
    return counted;
  }
}
