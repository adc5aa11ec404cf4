import type pg from "pg";
import { Batcher } from "../platform/batching/batcher.ts";
import { countAvailable } from "./db/listings.ts";

/**
 * Batches in one statement. Counting one takes milliseconds, so that a statement takes less than a tenth of a second.
 */
const BATCH_MAX = 16;
/** Counts that may wait in one process. */
const WAITING_MAX = 10_000;
/** Age after which a count is shown once more, and then counted again. Milliseconds. */
const RECOUNT_AFTER_MS = 10_000;
/** Maximum age of a count that is shown. Milliseconds. */
const AGE_MAX_MS = 20_000;
/** Counts that a process keeps. */
const KEPT_MAX = 10_000;

interface Kept {
  available: number;
  countedAt: number;
}

/**
 * How many vouchers of each listed batch can be bought, counted at most every ten seconds however many pages of
 * listings are read. One connection counts for all callers.
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

  /** The count of a batch, up to 1 001 and at most 20 seconds old. @throws BatcherFull. */
  async read(batchId: string): Promise<number> {
    const kept = this.#kept.get(batchId);
    const ageMs = performance.now() - (kept?.countedAt ?? Number.NEGATIVE_INFINITY);
    if (kept === undefined || ageMs > AGE_MAX_MS) return this.#count(batchId);
    // The page does not wait. If this fails, a later page counts again, or waits.
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
