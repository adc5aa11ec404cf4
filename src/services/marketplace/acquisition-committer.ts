import pLimit from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import { Batcher, BatcherFull } from "../../batching/batcher.ts";
import {
  type AcquiredVoucher,
  type AcquisitionKey,
  findDamaged,
  insertAcquisitions,
  type NewAcquisition,
  pickFreeVouchers,
  pickVoucher,
  readSources,
  readStandings,
  type Source,
  type Standing,
  setDamagedAside,
  type WantedSource,
} from "../../db/acquisitions.ts";
import { insertPendingEvents } from "../../db/events.ts";
import type { Queryable, Transaction } from "../../db/pool.ts";
import { type Decided, isLockTimeout, mayBeFromOneItem, readThenWrite } from "../../db/transaction.ts";
import { type LockedVoucher, readLockedVouchers } from "../../db/vouchers.ts";
import { isContractActive } from "../../domain/audience.ts";
import { type EventContent, nextEvent } from "../../domain/chain.ts";
import { normaliseCode, type RandomBytes } from "../../domain/codes.ts";
import { decideOffers, type OfferRefusal, type OpenBatch } from "../../domain/offer.ts";
import { liveReservation } from "../../domain/reservation.ts";
import { type Observing, observeBatches } from "../batches/observe-batches.ts";
import { retryConflicts } from "../batches/retry-conflicts.ts";
import { runInTurn } from "../batches/run-in-turn.ts";

/** A user's request for a voucher. */
export interface AcquisitionRequest {
  userId: string;
  /** What the user acquires from: a listing, a product, or a referrer's link. */
  way: WantedSource["way"];
  /** Id of the listing or product, or code of the link. */
  id: string;
  /** Null for a claim. */
  paymentRef: string | null;
}

export type AcquisitionOutcome =
  | { kind: "acquired"; voucher: AcquiredVoucher; sandbox: boolean; alreadyConfirmed: boolean }
  | Refused;

interface Refused {
  kind: "refused";
  code: OfferRefusal | "listing_not_found" | "product_not_found" | "link_not_found" | "sold_out" | "voucher_busy";
}

/** Acquisitions in one transaction. */
const BATCH_MAX = 64;
/** Requests in one shared read. When many users compete, it answers most of them in one turn of the event loop, at 0.1 ms each. */
const READ_MAX = 32;
/** Shared reads that run at the same time. */
const READ_CONCURRENCY = 2;
/** Connections for requests that wait for a lock. */
const WAITING_CONNECTIONS = 3;
/** How long a request tries again while others lock the last vouchers, or while another call of the same user runs. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Requests that may wait in one process: as many as it has connections to callers. */
const WAITING_MAX = 10_000;

/** A request that the shared read has not answered. */
interface Candidate {
  request: AcquisitionRequest;
  key: AcquisitionKey;
  /** The batches to pick from, in order. */
  batchIds: readonly string[];
}

/** A candidate that tries again until `giveUpAt`, on the monotonic clock in milliseconds. */
type WaitingCandidate = Candidate & { giveUpAt: number };

/** Ids of locked vouchers by batch. */
type Picked = Map<string, string[]>;

/** The state from which candidates are decided, read after the vouchers were locked. */
interface LockedState {
  /** The one time that the transaction uses, in decisions and in what it writes. */
  now: Date;
  sources: Map<string, Source>;
  standings: readonly Standing[];
  /** Locked vouchers without a live reservation by batch, in order of serials. Without the damaged ones. */
  free: Map<string, LockedVoucher[]>;
  /** Ids of locked vouchers whose chains take no further event. They are set aside, so that they stop no other acquisition. */
  damaged: readonly string[];
}

const BUSY: Refused = { kind: "refused", code: "voucher_busy" };

interface Deps extends Observing {
  pool: pg.Pool;
  log: Logger;
  randomBytes: RandomBytes;
}

/**
 * Group commit for claims and purchases. A request passes up to three stages:
 *
 * - A read, shared by all waiting requests, answers repeats and requests that cannot get a voucher.
 * - The others share one transaction. It picks as many vouchers of each batch as are requested, only unlocked ones, so it waits for none.
 * - A request that found only locked vouchers tries again with all others for the same source, and waits for a voucher if it must. If
 *   the shared transaction met another lock, such as another transaction's uncommitted claim of the same user, each of its requests
 *   tries again alone. These waits have connections of their own. A request waits for a voucher only while it has none.
 *
 * A batch that fails is repeated item by item, so a bad request fails alone.
 */
export class AcquisitionCommitter {
  readonly #deps: Deps;
  readonly #reads: Batcher<AcquisitionRequest, AcquisitionOutcome | Candidate>;
  readonly #shared: Batcher<Candidate, AcquisitionOutcome>;
  /** Groups of waiting candidates, by source or, after a lock timeout, by acquisition. Each group has its own batcher. */
  readonly #waiting = new Map<string, { batcher: Batcher<WaitingCandidate, AcquisitionOutcome>; count: number }>();
  readonly #waitingConnections = pLimit(WAITING_CONNECTIONS);
  #pending = 0;
  #onIdle: (() => void)[] = [];

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#reads = new Batcher((requests) => readAndAnswer(deps.pool, requests), {
      batchMax: READ_MAX,
      waitingMax: WAITING_MAX,
      concurrency: READ_CONCURRENCY,
      splitOn: mayBeFromOneItem,
    });
    this.#shared = new Batcher((candidates) => this.#runShared(candidates), {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
      observer: observeBatches(deps, "acquisitions"),
      splitOn: mayBeFromOneItem,
    });
  }

  /**
   * Decides one request and commits the decision.
   * @throws BatcherFull when too many requests wait, or the database's error.
   */
  async submit(request: AcquisitionRequest): Promise<AcquisitionOutcome> {
    if (this.#pending >= WAITING_MAX) throw new BatcherFull();
    this.#pending += 1;
    try {
      const read = await this.#reads.submit(request);
      return "kind" in read ? read : await this.#shared.submit(read);
    } finally {
      this.#pending -= 1;
      if (this.#pending === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Resolves once no request is waiting or being decided. */
  async drain(): Promise<void> {
    if (this.#pending > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  async #runShared(candidates: readonly Candidate[]): Promise<(AcquisitionOutcome | Promise<AcquisitionOutcome>)[]> {
    try {
      const outcomes = await this.#commit(candidates, false);
      return outcomes.map((outcome, index) => {
        const candidate = candidates[index] as Candidate;
        return outcome ?? this.#wait(sourceKey(candidate.request), candidate);
      });
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
      return candidates.map((candidate) => this.#wait(acquisitionKey(candidate.key), candidate));
    }
  }

  /** Tries again, together with the other candidates of the same group, until `LOCK_WAIT_MS` has passed. */
  async #wait(groupKey: string, candidate: Candidate): Promise<AcquisitionOutcome> {
    const group = this.#waiting.get(groupKey) ?? { batcher: this.#openWaiting(), count: 0 };
    this.#waiting.set(groupKey, group);
    group.count += 1;
    const giveUpAt = performance.now() + LOCK_WAIT_MS;
    try {
      let outcome: AcquisitionOutcome;
      do outcome = await group.batcher.submit({ ...candidate, giveUpAt });
      while (outcome === BUSY && performance.now() < giveUpAt);
      return outcome;
    } finally {
      group.count -= 1;
      if (group.count === 0) this.#waiting.delete(groupKey);
    }
  }

  #openWaiting(): Batcher<WaitingCandidate, AcquisitionOutcome> {
    return new Batcher((waiting) => this.#runWaiting(waiting), {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
      splitOn: mayBeFromOneItem,
    });
  }

  /** Waits for a connection, and then up to the pool's `lock_timeout` for a lock. */
  #runWaiting(waiting: readonly WaitingCandidate[]): Promise<AcquisitionOutcome[]> {
    const busy = () => waiting.map(() => BUSY);
    const giveUpAt = Math.min(...waiting.map((candidate) => candidate.giveUpAt));
    const commit = async () => {
      try {
        return (await this.#commit(waiting, true)).map((outcome) => outcome ?? BUSY);
      } catch (error) {
        if (isLockTimeout(error)) return busy();
        throw error;
      }
    };
    return runInTurn(this.#waitingConnections, commit, () => giveUpAt - performance.now(), busy);
  }

  /** Decides candidates in one transaction. The outcome is null for a candidate that found only locked vouchers. */
  #commit(candidates: readonly Candidate[], mayWait: boolean): Promise<(AcquisitionOutcome | null)[]> {
    return retryConflicts(() =>
      readThenWrite(
        this.#deps.pool,
        (tx) => pickRound(tx, new Map(), distinctByKey(candidates), 0),
        async (first, tx) => {
          const picked = await pickOthers(tx, first, mayWait);
          return this.#decide(candidates, await readLockedState(tx, candidates, picked));
        },
      ),
    );
  }

  /** Decides candidates one after another on the state in memory. All acquisitions are written together. */
  #decide(
    candidates: readonly Candidate[],
    { now, sources, standings, free, damaged }: LockedState,
  ): Decided<(AcquisitionOutcome | null)[]> {
    const acquisitions: NewAcquisition[] = [];
    const events: EventContent[] = [];
    const acquired = new Map<string, AcquiredVoucher>();
    const result = candidates.map(({ request, key }, index): AcquisitionOutcome | null => {
      const source = sources.get(sourceKey(request)) as Source;
      const standing = standings[index] as Standing;
      const earlier = standing.earlier ?? acquired.get(acquisitionKey(key));
      const { sandbox } = key.product;
      if (earlier !== undefined) return { kind: "acquired", voucher: earlier, sandbox, alreadyConfirmed: true };
      const decision = findOpenBatches(request, source, standing, now);
      if (decision.kind === "refused") return decision;
      const batch = decision.batches.find(({ batchId }) => free.get(batchId)?.length);
      const voucher = batch && free.get(batch.batchId)?.shift();
      if (batch === undefined || voucher === undefined) {
        return isSoldOut(source, decision.batches) ? { kind: "refused", code: "sold_out" } : null;
      }
      acquisitions.push({ ...key, voucher });
      events.push(this.#eventOf(request, source, standing, batch, voucher, now));
      const { id, organizationId, code } = voucher;
      const given = { id, organizationId, codeKey: normaliseCode(code) };
      acquired.set(acquisitionKey(key), given);
      return { kind: "acquired", voucher: given, sandbox, alreadyConfirmed: false };
    });
    const writes = [...insertAcquisitions(acquisitions), ...insertPendingEvents(events), ...setDamagedAside(damaged)];
    const report = () => {
      for (const voucherId of damaged) this.#deps.log.error({ voucherId }, "a damaged voucher left its window");
    };
    return { result, writes, afterCommit: report };
  }

  #eventOf(
    { way, id, userId, paymentRef }: AcquisitionRequest,
    { link }: Source,
    { role, contract }: Standing,
    { audience, rule }: OpenBatch,
    voucher: LockedVoucher,
    now: Date,
  ): EventContent {
    const eventType = paymentRef === null ? "voucher.instance.claimed" : "voucher.instance.bought";
    const event = nextEvent(this.#deps.randomBytes, voucher, eventType, now, {
      audience,
      audienceRule: rule,
      contractId: rule === "active_contract" ? contract?.id : link?.contractId,
      referrer: link?.referrerId,
      referralLink: way === "link" ? id : undefined,
      ...(paymentRef !== null && { paymentRef, pricePaidUsd: voucher.priceUsd }),
    });
    return { ...event, actorConnectedId: userId, actorIsEmployee: role !== null };
  }
}

/** Answers repeats and requests that cannot get a voucher. The others need a transaction. */
async function readAndAnswer(
  pool: pg.Pool,
  requests: readonly AcquisitionRequest[],
): Promise<(AcquisitionOutcome | Candidate)[]> {
  // Sources first: if the first statement no longer finds a voucher because this user acquired it, the second one finds the acquisition.
  const sources = await readDistinctSources(pool, requests, []);
  const keyed = requests.flatMap((request) => {
    const source = sources.get(sourceKey(request)) as Source;
    return source.product === null ? [] : [{ request, source, key: { ...request, product: source.product } }];
  });
  const standings =
    keyed.length === 0
      ? []
      : await readStandings(
          pool,
          keyed.map(({ key }) => key),
        );
  const answers = new Map(
    keyed.map(({ request, source, key }, index): [AcquisitionRequest, AcquisitionOutcome | Candidate] => {
      const standing = standings[index] as Standing;
      if (standing.earlier !== null) {
        const { sandbox } = key.product;
        return [request, { kind: "acquired", voucher: standing.earlier, sandbox, alreadyConfirmed: true }];
      }
      const decision = findOpenBatches(request, source, standing, source.now);
      if (decision.kind === "refused") return [request, decision];
      if (isSoldOut(source, decision.batches)) return [request, { kind: "refused", code: "sold_out" }];
      const left = decision.batches.filter((batch) => !isSoldOut(source, [batch]));
      return [request, { request, key, batchIds: left.map(({ batchId }) => batchId) }];
    }),
  );
  return requests.map((request) => answers.get(request) ?? { kind: "refused", code: NOT_FOUND[request.way] });
}

const NOT_FOUND = {
  listing: "listing_not_found",
  product: "product_not_found",
  link: "link_not_found",
} as const satisfies Record<WantedSource["way"], Refused["code"]>;

/**
 * Which batches are open to a request whose product exists. Only a sandbox's members and the brand's referrers can use its listings and
 * products. Everyone can use its referrers' links.
 */
function findOpenBatches(
  { way }: AcquisitionRequest,
  { product, offers, link }: Source,
  { role, contract }: Standing,
  now: Date,
): { kind: "open"; batches: readonly OpenBatch[] } | Refused {
  const isInsider = role !== null || (contract !== null && isContractActive(contract, now));
  if (product?.sandbox && way !== "link" && !isInsider) return { kind: "refused", code: NOT_FOUND[way] };
  if (link !== null && !isContractActive(link, now)) return { kind: "refused", code: "link_not_found" };
  return decideOffers(offers, { isOwner: role === "owner", contract }, now, way === "link");
}

function isSoldOut({ offers }: Source, open: readonly OpenBatch[]): boolean {
  return open.every(({ batchId }) => offers.find((offer) => offer.batchId === batchId)?.left === false);
}

/** The state after a round of picks. Each round tries the next batch of every candidate that has no voucher yet. */
interface Round {
  picked: Picked;
  /** Candidates that have no voucher yet. */
  missing: readonly Candidate[];
  /** The index in each candidate's `batchIds` that was tried. */
  batchIndex: number;
}

/** Locks unlocked vouchers of each candidate's batch at `batchIndex`. Sends one statement for each batch, all together. */
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
      const ids = await pickFreeVouchers(tx, batchId, before, wanting.length);
      picked.set(batchId, [...before, ...ids]);
      return wanting.slice(ids.length);
    }),
  );
  return { picked, missing: missing.flat(), batchIndex };
}

/** Picks from the other batches of candidates that have no voucher yet. If no voucher was picked and `mayWait` is set, waits for a locked one. */
async function pickOthers(tx: Transaction, first: Round, mayWait: boolean): Promise<Picked> {
  let round = first;
  while (round.missing.length > 0) round = await pickRound(tx, round.picked, round.missing, round.batchIndex + 1);
  const { picked } = round;
  if (!mayWait) return picked;
  for (const batchId of picked.keys()) {
    if ([...picked.values()].some((ids) => ids.length > 0)) break;
    const voucherId = await pickVoucher(tx, batchId);
    if (voucherId !== null) picked.set(batchId, [voucherId]);
  }
  return picked;
}

async function readLockedState(
  tx: Transaction,
  candidates: readonly Candidate[],
  picked: Picked,
): Promise<LockedState> {
  const ids = [...picked.values()].flat();
  const isShort = ids.length < distinctByKey(candidates).length;
  const requests = candidates.map(({ request }) => request);
  const [locked, damaged, sources, standings] = await Promise.all([
    ids.length === 0 ? null : readLockedVouchers(tx, ids),
    findDamaged(tx, ids),
    // Sources first, as in the shared read.
    readDistinctSources(tx, requests, isShort ? ids : null),
    readStandings(
      tx,
      candidates.map(({ key }) => key),
    ),
  ]);
  const now = locked?.now ?? ([...sources.values()][0] as Source).now;
  const free = new Map(
    [...picked].map(([batchId, voucherIds]) => [
      batchId,
      voucherIds.flatMap((id) => {
        const voucher = locked?.vouchers.get(id);
        if (voucher === undefined) throw new Error(`the locked voucher ${id} was not read`);
        return damaged.includes(id) || liveReservation(voucher.reservation, now) !== null ? [] : [voucher];
      }),
    ]),
  );
  return { now, sources, standings, free, damaged };
}

/** Reads each source once. */
async function readDistinctSources(
  db: Queryable,
  requests: readonly AcquisitionRequest[],
  notCounted: readonly string[] | null,
): Promise<Map<string, Source>> {
  const wanted = new Map(
    requests.map((request): [string, WantedSource] => {
      const { way, id, paymentRef } = request;
      return [sourceKey(request), { way, id, kind: paymentRef === null ? "claim" : "buy" }];
    }),
  );
  const sources = await readSources(db, [...wanted.values()], notCounted);
  return new Map([...wanted.keys()].map((key, index) => [key, sources[index] as Source]));
}

/** The first candidate of each acquisition. The others repeat it and need no voucher of their own. */
function distinctByKey(candidates: readonly Candidate[]): Candidate[] {
  return [...new Map(candidates.toReversed().map((one) => [acquisitionKey(one.key), one])).values()].reverse();
}

function sourceKey({ way, id, paymentRef }: AcquisitionRequest): string {
  return `${paymentRef === null ? "claim" : "buy"} ${way} ${id}`;
}

function acquisitionKey({ userId, product, paymentRef }: AcquisitionKey): string {
  return JSON.stringify(paymentRef === null ? [userId, product.id] : [userId, product.organizationId, paymentRef]);
}
