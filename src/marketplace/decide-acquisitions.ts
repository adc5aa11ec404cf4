import type pg from "pg";
import type { Logger } from "pino";
import { type EventContent, nextEvent } from "../core/chain/chain.ts";
import { findDamaged } from "../core/chain/db/broken-chains.ts";
import { insertPendingEvents } from "../core/chain/db/events.ts";
import type { Undecided } from "../core/commit/group-committer.ts";
import { type LockedVoucher, readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { liveReservation } from "../core/voucher/reservation.ts";
import type { RandomBytes } from "../platform/base32.ts";
import type { Queryable, Transaction } from "../platform/db/pool.ts";
import type { Decided } from "../platform/db/transaction.ts";
import { isContractActive } from "./audience.ts";
import {
  type AcquiredVoucher,
  type Acquirer,
  type AcquisitionKey,
  insertAcquisitions,
  type NewAcquisition,
  readAcquirers,
  readSources,
  type Source,
  setDamagedAside,
  type WantedSource,
} from "./db/acquisitions.ts";
import { decideOffers, type OfferRefusal, type OpenBatch } from "./offer.ts";

/** A user's request for a voucher. */
export interface AcquisitionRequest {
  userId: string;
  /** Where the user found the voucher: a listing, a product, or a referrer's link. */
  way: WantedSource["way"];
  /** The id of the listing or product, or the code of the link. */
  id: string;
  /** Null for a claim. */
  paymentRef: string | null;
}

export type AcquisitionOutcome = Acquired | Refused;

/** The user has the voucher, from this request or an earlier one. A committer returns this result after the commit. */
export interface Acquired {
  kind: "acquired";
  voucher: AcquiredVoucher;
  sandbox: boolean;
  alreadyConfirmed: boolean;
}

export interface Refused {
  kind: "refused";
  code: OfferRefusal | "listing_not_found" | "product_not_found" | "link_not_found" | "sold_out" | "voucher_busy";
}

/** A request that the shared read could not answer. */
export interface Candidate {
  request: AcquisitionRequest;
  key: AcquisitionKey;
  /**
   * The batches to pick from, in this order: the batches that were open to the request and had vouchers at the last
   * read. A decision that leaves the request undecided updates this list.
   */
  batchIds: readonly string[];
}

/** The ids of locked vouchers, by batch. */
export type Picked = Map<string, string[]>;

/** The state on which candidates are decided, read after the vouchers were locked. */
interface PickedState {
  /** The time that the transaction uses for all decisions and all rows. */
  now: Date;
  sources: Map<string, Source>;
  acquirers: readonly Acquirer[];
  /** Locked vouchers by batch, in order of serials, except damaged, suspended and reserved ones. */
  free: Map<string, LockedVoucher[]>;
  /** Ids of locked vouchers whose chains accept no further event. Later acquisitions must not pick these vouchers. */
  damaged: readonly string[];
}

export interface DecideDeps {
  log: Logger;
  randomBytes: RandomBytes;
}

/** Answers repeats, and requests that cannot get a voucher. The other requests need a transaction. */
export async function answerFromRead(
  pool: pg.Pool,
  requests: readonly AcquisitionRequest[],
): Promise<(AcquisitionOutcome | Candidate)[]> {
  // Reads which vouchers are left before it reads what the users have. If another call of the user takes the last
  // voucher between the two statements, the request is a repeat and not sold out.
  const sources = await readDistinctSources(pool, requests, []);
  const keyed = requests.flatMap((request) => {
    const source = sources.get(sourceKey(request)) as Source;
    return source.product === null ? [] : [{ request, source, key: { ...request, product: source.product } }];
  });
  const acquirers =
    keyed.length === 0
      ? []
      : await readAcquirers(
          pool,
          keyed.map(({ key }) => key),
        );
  const answers = new Map(
    keyed.map(({ request, source, key }, index): [AcquisitionRequest, AcquisitionOutcome | Candidate] => {
      const acquirer = acquirers[index] as Acquirer;
      if (acquirer.earlier !== null) {
        const { sandbox } = key.product;
        return [request, { kind: "acquired", voucher: acquirer.earlier, sandbox, alreadyConfirmed: true }];
      }
      const decision = findOpenBatches(request, source, acquirer, source.now);
      if (decision.kind === "refused") return [request, decision];
      const batchIds = batchesLeft(source, decision.batches);
      if (batchIds.length === 0) return [request, refuseWithoutVoucher(source, decision.batches)];
      return [request, { request, key, batchIds }];
    }),
  );
  return requests.map((request) => answers.get(request) ?? { kind: "refused", code: NOT_FOUND[request.way] });
}

const NOT_FOUND = {
  listing: "listing_not_found",
  product: "product_not_found",
  link: "link_not_found",
} as const satisfies Record<WantedSource["way"], Refused["code"]>;

/** Why open batches give no voucher: `voucher_suspended` if some have suspended vouchers, otherwise `sold_out`. */
function refuseWithoutVoucher({ offers }: Source, open: readonly OpenBatch[]): Refused {
  const held = new Set(offers.flatMap(({ batchId, supply }) => (supply === "held" ? [batchId] : [])));
  const isHeld = open.some(({ batchId }) => held.has(batchId));
  return { kind: "refused", code: isHeld ? "voucher_suspended" : "sold_out" };
}

/**
 * The batches that are open to a request. Only a sandbox's members and referrers may use its listings and products.
 * Everyone may use its links.
 */
function findOpenBatches(
  { way }: AcquisitionRequest,
  { product, offers, link }: Source,
  { role, contract }: Acquirer,
  now: Date,
): { kind: "open"; batches: readonly OpenBatch[] } | Refused {
  const isInsider = role !== null || (contract !== null && isContractActive(contract, now));
  if (product?.sandbox && way !== "link" && !isInsider) return { kind: "refused", code: NOT_FOUND[way] };
  if (link !== null && !isContractActive(link, now)) return { kind: "refused", code: "link_not_found" };
  return decideOffers(offers, { isOwner: role === "owner", contract }, now, way === "link");
}

/** The ids of the open batches that have vouchers, in order. Includes batches whose supply was not read. */
function batchesLeft({ offers }: Source, open: readonly OpenBatch[]): string[] {
  const left = new Set(
    offers.flatMap(({ batchId, supply }) => (supply === null || supply === "left" ? [batchId] : [])),
  );
  return open.map(({ batchId }) => batchId).filter((batchId) => left.has(batchId));
}

/**
 * Reads the state of picked vouchers.
 * @param checksChains whether to find damaged vouchers, after an insert failed because of a damaged voucher.
 */
export async function readPickedState(
  tx: Transaction,
  candidates: readonly Candidate[],
  picked: Picked,
  checksChains: boolean,
): Promise<PickedState> {
  const ids = [...picked.values()].flat();
  const isShort = ids.length < distinctByKey(candidates).length;
  const requests = candidates.map(({ request }) => request);
  const [locked, damaged, sources, acquirers] = await Promise.all([
    ids.length === 0 ? null : readLockedVouchers(tx, ids),
    checksChains ? findDamaged(tx, ids) : ([] as string[]),
    // The order of these two reads has the same reason as in `answerFromRead`.
    readDistinctSources(tx, requests, isShort ? ids : null),
    readAcquirers(
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
        const isTaken = voucher.suspended || liveReservation(voucher.reservation, now) !== null;
        return isTaken || damaged.includes(id) ? [] : [voucher];
      }),
    ]),
  );
  return { now, sources, acquirers, free, damaged };
}

/**
 * Decides candidates one after another, on the state in memory. Writes all their acquisitions together. For a candidate
 * that stays undecided, sets `batchIds` to the batches that have vouchers now.
 */
export function decideAcquisitions(
  deps: DecideDeps,
  candidates: readonly Candidate[],
  { now, sources, acquirers, free, damaged }: PickedState,
): Decided<(AcquisitionOutcome | Undecided)[]> {
  const acquisitions: NewAcquisition[] = [];
  const events: EventContent[] = [];
  const acquired = new Map<string, AcquiredVoucher>();
  const result = candidates.map((candidate, index): AcquisitionOutcome | Undecided => {
    const { request, key } = candidate;
    const source = sources.get(sourceKey(request)) as Source;
    const acquirer = acquirers[index] as Acquirer;
    const earlier = acquirer.earlier ?? acquired.get(acquisitionKey(key));
    const { sandbox } = key.product;
    if (earlier !== undefined) return { kind: "acquired", voucher: earlier, sandbox, alreadyConfirmed: true };
    const decision = findOpenBatches(request, source, acquirer, now);
    if (decision.kind === "refused") return decision;
    const batch = decision.batches.find(({ batchId }) => free.get(batchId)?.length);
    const voucher = batch && free.get(batch.batchId)?.shift();
    if (batch === undefined || voucher === undefined) {
      candidate.batchIds = batchesLeft(source, decision.batches);
      return candidate.batchIds.length === 0 ? refuseWithoutVoucher(source, decision.batches) : "locked";
    }
    acquisitions.push({ ...key, voucher });
    events.push(eventOf(deps, request, source, acquirer, batch, voucher, now));
    acquired.set(acquisitionKey(key), voucher);
    return { kind: "acquired", voucher, sandbox, alreadyConfirmed: false };
  });
  const writes = [
    ...insertAcquisitions(acquisitions, now),
    ...insertPendingEvents(events),
    ...setDamagedAside(damaged),
  ];
  const report = () => {
    for (const voucherId of damaged) deps.log.error({ voucherId }, "a damaged voucher left its window");
  };
  return { result, writes, afterCommit: report };
}

function eventOf(
  { randomBytes }: DecideDeps,
  { way, id, userId, paymentRef }: AcquisitionRequest,
  { link }: Source,
  { role, contract }: Acquirer,
  { audience, rule }: OpenBatch,
  voucher: LockedVoucher,
  now: Date,
): EventContent {
  const eventType = paymentRef === null ? "voucher.instance.claimed" : "voucher.instance.bought";
  const event = nextEvent(randomBytes, voucher, eventType, now, {
    audience,
    audienceRule: rule,
    contractId: rule === "active_contract" ? contract?.id : link?.contractId,
    referrer: link?.referrerId,
    referralLink: way === "link" ? id : undefined,
    ...(paymentRef !== null && { paymentRef, pricePaidUsd: voucher.priceUsd }),
  });
  return { ...event, actorConnectedId: userId, actorIsEmployee: role !== null };
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

/** The first candidate of each acquisition. Later candidates repeat the acquisition and need no further voucher. */
export function distinctByKey(candidates: readonly Candidate[]): Candidate[] {
  return [...new Map(candidates.toReversed().map((one) => [acquisitionKey(one.key), one])).values()].reverse();
}

export function sourceKey({ way, id, paymentRef }: AcquisitionRequest): string {
  return `${paymentRef === null ? "claim" : "buy"} ${way} ${id}`;
}

export function acquisitionKey({ userId, product, paymentRef }: AcquisitionKey): string {
  return JSON.stringify(paymentRef === null ? [userId, product.id] : [userId, product.organizationId, paymentRef]);
}
