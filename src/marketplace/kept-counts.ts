import type pg from "pg";
import type { Requester } from "../core/callers/bulkhead.ts";
import { Batcher } from "../platform/batching/batcher.ts";
import { COUNTED_MAX } from "./api/listings.ts";
import { countAvailable } from "./db/listings.ts";

/** Maximum number of batches in one statement. A count takes milliseconds, so the statement takes less than 0.1 s. */
const BATCH_MAX = 16;
/** Maximum number of waiting counts in one process. */
const WAITING_MAX = 10_000;
/** A page that reads a count of this age shows the count, and lets the process count again. Milliseconds. */
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
 * Visitors join a waiting count of another visitor only if that visitor has at most this many: the number that one page
 * needs. The turn of a visitor with more may come much later.
 */
const SHARED_MAX = 100;

interface Wanted {
  batchId: string;
  visitor: string;
}

/**
 * The number of vouchers that can be bought, for each listed batch. A batch is counted at most once in ten seconds,
 * even if pages are read more often. All visitors share one database connection, on which they take turns.
 */
export class KeptCounts {
  /** The oldest count first. */
  readonly #kept = new Map<string, Kept>();
  /** For each batch: the newest waiting count, and the visitor in whose turn it is made. */
  readonly #waiting = new Map<string, { visitor: string; counted: Promise<number> }>();
  readonly #waitingOf = new Map<string, number>();
  readonly #batcher: Batcher<Wanted, number>;

  constructor({ pool }: { pool: pg.Pool }) {
    this.#batcher = new Batcher((wanted) => this.#count(pool, wanted), {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
      ownerOf: ({ visitor }) => visitor,
    });
  }

  /** The count of a batch, at most {@link COUNTED_MAX} and at most 20 seconds old. @throws BatcherFull. */
  async read(batchId: string, { visitor }: Requester<"visitor">): Promise<number> {
    const kept = this.#kept.get(batchId);
    const age = ageMs(kept);
    if (kept === undefined || age > AGE_MAX_MS) return this.#countSoon({ batchId, visitor });
    // The page does not wait for the new count. If the count fails, a later page counts again.
    if (age > RECOUNT_AFTER_MS) this.#countSoon({ batchId, visitor }).catch(() => undefined);
    return kept.available;
  }

  close(): Promise<void> {
    return this.#batcher.close();
  }

  /** Joins the batch's waiting count, unless the other visitor who asked for it has too many waiting counts. */
  #countSoon(wanted: Wanted): Promise<number> {
    const { batchId, visitor } = wanted;
    const first = this.#waiting.get(batchId);
    if (first !== undefined && (first.visitor === visitor || this.#countsOf(first.visitor) <= SHARED_MAX)) {
      return first.counted;
    }
    this.#waitingOf.set(visitor, this.#countsOf(visitor) + 1);
    const counted = this.#batcher.submit(wanted).finally(() => {
      if (this.#waiting.get(batchId)?.counted === counted) this.#waiting.delete(batchId);
      const left = this.#countsOf(visitor) - 1;
      if (left > 0) this.#waitingOf.set(visitor, left);
      else this.#waitingOf.delete(visitor);
    });
    this.#waiting.set(batchId, { visitor, counted });
    return counted;
  }

  #countsOf(visitor: string): number {
    return this.#waitingOf.get(visitor) ?? 0;
  }

  /** Counts the batches, except those that were counted in another visitor's turn meanwhile. */
  async #count(pool: pg.Pool, wanted: Wanted[]): Promise<number[]> {
    const counts = new Map<string, number>();
    for (const { batchId } of wanted) {
      const kept = this.#kept.get(batchId);
      if (kept !== undefined && ageMs(kept) <= RECOUNT_AFTER_MS) counts.set(batchId, kept.available);
    }
    const old = [...new Set(wanted.map(({ batchId }) => batchId))].filter((batchId) => !counts.has(batchId));
    const counted = old.length === 0 ? [] : await countAvailable(pool, { batchIds: old, countedMax: COUNTED_MAX });
    for (const { batchId, available } of counted) {
      counts.set(batchId, available);
      this.#keep(batchId, available);
    }
    return wanted.map(({ batchId }) => counts.get(batchId) ?? 0);
  }

  #keep(batchId: string, available: number): void {
    this.#kept.delete(batchId);
    this.#kept.set(batchId, { available, countedAt: performance.now() });
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) break;
      this.#kept.delete(oldest);
    }
  }
}

function ageMs(kept: Kept | undefined): number {
  return performance.now() - (kept?.countedAt ?? Number.NEGATIVE_INFINITY);
}
