import type pg from "pg";
import { LOCK_CONNECTIONS } from "../core/callers/caller-kinds.ts";
import { GroupCommitter, type Undecided } from "../core/commit/group-committer.ts";
import { type Observing, observeBatches } from "../core/metrics/observe-batches.ts";
import { Batcher, OpenWork } from "../platform/batching/batcher.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { isLockTimeout, mayBeFromOneItem, readThenWrite, violates, waitForLocks } from "../platform/db/transaction.ts";
import { pickFreeVouchers, pickVoucher } from "./db/acquisitions.ts";
import {
  type AcquisitionOutcome,
  type AcquisitionRequest,
  acquisitionKey,
  answerFromRead,
  type Candidate,
  type DecideDeps,
  decideAcquisitions,
  distinctByKey,
  type Picked,
  readPickedState,
  sourceKey,
} from "./decide-acquisitions.ts";

/** Maximum number of requests in one read. Answering takes 0.1 ms per request, in one turn of the event loop. */
const READ_MAX = 32;
const READ_CONCURRENCY = 2;
/**
 * How long a request tries again while other transactions have locked the last vouchers, or while another call of the
 * same user runs. Milliseconds.
 */
const LOCK_WAIT_MS = 3_000;
/**
 * How long a request waits for one particular lock before it searches again for any free voucher. Most transactions
 * hold a row's lock for a few milliseconds. Milliseconds.
 */
const LOCK_SLICE_MS = 200;
/** Maximum number of waiting requests in one process. It equals the number of connections that the process accepts. */
const WAITING_MAX = 10_000;

/**
 * Group commit for claims and purchases. A read, shared by all waiting requests, answers repeats and requests that
 * cannot get a voucher. A group committer decides the other requests. Its transaction picks only unlocked vouchers:
 * from each batch, as many as are requested. If all vouchers are locked, the requests for one listing, link or product
 * wait together for one voucher's lock. Five times a second, they search again in all open batches with vouchers.
 */
export class AcquisitionCommitter {
  readonly #work = new OpenWork();
  readonly #reads: Batcher<AcquisitionRequest, AcquisitionOutcome | Candidate>;
  readonly #committer: GroupCommitter<Candidate, AcquisitionOutcome>;

  constructor(deps: Observing & DecideDeps & { pool: pg.Pool }) {
    this.#reads = new Batcher((requests) => answerFromRead(deps.pool, requests), {
      batchMax: READ_MAX,
      waitingMax: WAITING_MAX,
      concurrency: READ_CONCURRENCY,
      // The owner is the listing, link or product, because its organization is not known before the read.
      ownerOf: sourceKey,
      splitOn: mayBeFromOneItem,
    });
    this.#committer = new GroupCommitter<Candidate, AcquisitionOutcome>({
      commit: (candidates, waitMs) => commitAcquisitions(deps, candidates, waitMs),
      groupOf: ({ request, key }, why) => (why === "locked" ? sourceKey(request) : acquisitionKey(key)),
      busy: { kind: "refused", code: "voucher_busy" },
      observer: observeBatches(deps, "acquisitions"),
      lockWaitMs: LOCK_WAIT_MS,
      waitingMax: WAITING_MAX,
      ownerOf: ({ key }) => key.product.organizationId,
      slowConnections: LOCK_CONNECTIONS.acquisitions,
    });
  }

  /**
   * Decides one request and commits.
   * @throws BatcherFull when too many requests wait, BatcherClosed after the close, or the database's error.
   */
  submit(request: AcquisitionRequest): Promise<AcquisitionOutcome> {
    return this.#work.run(async () => {
      const read = await this.#reads.submit(request);
      return "kind" in read ? read : this.#committer.submit(read);
    });
  }

  /** Accepts no further request. Resolves once all accepted requests are decided. */
  close(): Promise<void> {
    return this.#work.close();
  }
}

/**
 * Decides candidates in one transaction. With `waitMs`, waits for a voucher if all are locked, at most {@link
 * LOCK_SLICE_MS} for one lock. After that, the candidates are undecided, even if `waitMs` has not passed.
 */
async function commitAcquisitions(
  deps: DecideDeps & { pool: pg.Pool },
  candidates: readonly Candidate[],
  waitMs: number | null,
): Promise<(AcquisitionOutcome | Undecided)[]> {
  const commit = (checksChains: boolean) =>
    readThenWrite(
      deps.pool,
      async (tx) => {
        const [first] = await Promise.all([
          pickRound(tx, new Map(), distinctByKey(candidates), 0),
          waitMs === null ? null : waitForLocks(tx, Math.min(waitMs, LOCK_SLICE_MS)),
        ]);
        return first;
      },
      async (first, tx) => {
        const decide = async (picked: Picked) =>
          decideAcquisitions(deps, candidates, await readPickedState(tx, candidates, picked, checksChains));
        const picked = await pickOthers(tx, first);
        const decided = await decide(picked);
        const isFound = [...picked.values()].some((ids) => ids.length > 0);
        if (waitMs === null || isFound || decided.result.some((outcome) => outcome !== "locked")) return decided;
        // `decide` has updated each candidate's `batchIds` to the batches that have vouchers.
        const freed = await waitForVoucher(tx, candidates);
        return freed === null ? decided : decide(freed);
      },
    );
  try {
    return await commit(false).catch((error) => {
      // A picked voucher is damaged: its chain has an event with the next sequence. The repeat leaves out such
      // vouchers.
      if (violates(error, "voucher_events_pkey")) return commit(true);
      throw error;
    });
  } catch (error) {
    if (isLockTimeout(error)) return candidates.map(() => "crossed" as const);
    throw error;
  }
}

/** The state after a round of picks. Each round tries the next batch of every candidate that has no voucher yet. */
interface Round {
  picked: Picked;
  /** Candidates that have no voucher yet. */
  missing: readonly Candidate[];
  /** For each candidate, the index in its `batchIds` that was tried. */
  batchIndex: number;
}

/** For each candidate's batch at `batchIndex`, picks and locks unlocked vouchers, in one statement per batch. */
async function pickRound(
  tx: Transaction,
  picked: Picked,
  candidates: readonly Candidate[],
  batchIndex: number,
): Promise<Round> {
  const byBatch = Map.groupBy(candidates, ({ batchIds }) => batchIds[batchIndex]);
  const missing = await Promise.all(
    [...byBatch].map(async ([batchId, wanting]) => {
      if (batchId === undefined) return [];
      const before = picked.get(batchId) ?? [];
      const ids = await pickFreeVouchers(tx, { batchId, except: before, limit: wanting.length });
      picked.set(batchId, [...before, ...ids]);
      return wanting.slice(ids.length);
    }),
  );
  return { picked, missing: missing.flat(), batchIndex };
}

/** For candidates that have no voucher yet, picks from their other batches. */
async function pickOthers(tx: Transaction, first: Round): Promise<Picked> {
  let round = first;
  while (round.missing.length > 0) round = await pickRound(tx, round.picked, round.missing, round.batchIndex + 1);
  return round.picked;
}

/**
 * Waits for the first voucher of the candidates' batches and locks it. Null if no batch has a voucher.
 * @throws DatabaseError 55P03 when the voucher stays locked.
 */
async function waitForVoucher(tx: Transaction, candidates: readonly Candidate[]): Promise<Picked | null> {
  for (const batchId of new Set(candidates.flatMap(({ batchIds }) => batchIds))) {
    const voucherId = await pickVoucher(tx, { batchId });
    if (voucherId !== null) return new Map([[batchId, [voucherId]]]);
  }
  return null;
}
