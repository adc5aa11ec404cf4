import pLimit, { type LimitFunction } from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import type { AcquireResponse } from "../../contract/acquire.ts";
import { AppError, voucherBusy } from "../../contract/errors.ts";
import type { SealJob, SealReply } from "../../contract/jobs.ts";
import { markSandbox } from "../../contract/sandbox.ts";
import {
  type AcquiredVoucher,
  type AcquisitionKey,
  acquireVoucherRow,
  fillAcquisition,
  findAcquisition,
  findOffers,
  insertAcquisition,
  isAnyPickable,
  type ProductOffers,
  pickVoucher,
} from "../../db/acquisitions.ts";
import { findLink, type ReferralLink } from "../../db/contracts.ts";
import { insertPendingEvent } from "../../db/events.ts";
import { findListingBatch } from "../../db/listings.ts";
import type { Transaction } from "../../db/pool.ts";
import { type Decided, isLockTimeout, isRetryable, readThenWrite, waitForLocks } from "../../db/transaction.ts";
import { type LockedVoucher, readLockedVouchers } from "../../db/vouchers.ts";
import { type AudienceRule, isContractActive } from "../../domain/audience.ts";
import { makeNonce } from "../../domain/chain.ts";
import type { RandomBytes } from "../../domain/codes.ts";
import { normaliseCode } from "../../domain/codes.ts";
import { decideOffers } from "../../domain/offer.ts";
import { liveReservation } from "../../domain/reservation.ts";
import type { Audience } from "../../domain/voucher.ts";
import type { AwaitedQueue } from "../../queues/awaited-queue.ts";
import { sealQueue } from "../../queues/catalog.ts";
import type { Traces } from "../../traces/traces.ts";
import { runInTurn } from "../batches/run-in-turn.ts";
import type { VoucherReads } from "../partner/resolve-voucher.ts";
import { verifyUrl, viewVoucher } from "../partner/voucher-view.ts";

/** The three ways to an open window: a listing, a product, or a referrer's link. */
export type AcquireRequest =
  | { by: "listing"; listingId: string; paymentRef: string }
  /** A purchase, or a claim when there is no payment. */
  | { by: "product"; productId: string; paymentRef: string | null }
  | { by: "link"; linkCode: string };

/** Where the vouchers for a request come from. */
interface Source {
  productId: string;
  /** The only batch to pick from, for a listing. */
  batchId: string | null;
  /** The link that the user came by, if any. */
  referral: { linkCode: string; link: ReferralLink } | null;
}

interface Acquired {
  voucher: AcquiredVoucher;
  alreadyConfirmed: boolean;
}

/** Longest wait for locks: for another call of the same user, or for the last vouchers while others acquire them. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Longest wait for the event's seal. The voucher is acquired in any case, and the seal job continues. Milliseconds. */
const SEAL_WAIT_MS = 1_000;
/** Reserved vouchers to pass over in a batch before it counts as having none left. */
const PASSED_OVER_MAX = 50;
/** Acquisitions of either kind that may wait in one process. */
const WAITING_MAX = 2_000;

interface Deps {
  pool: pg.Pool;
  acquisitions: Acquisitions;
  sealQueue: AwaitedQueue<SealJob, SealReply>;
  voucherReads: VoucherReads;
  randomBytes: RandomBytes;
  config: Config;
  log: Logger;
  traces: Traces;
}

/**
 * Gives a user a voucher from an open window, once per claim or payment. A repeat returns the same voucher, even if audience,
 * window or availability have changed since.
 * @throws AppError `listing_not_found`, `product_not_found`, `link_not_found`, `referrers_only`, `window_closed`, `sold_out`,
 * `voucher_busy`, `overloaded`.
 */
export async function acquireVoucher(ctx: Deps, userId: string, request: AcquireRequest): Promise<AcquireResponse> {
  const { free, waiting } = ctx.acquisitions;
  if (free.pendingCount >= WAITING_MAX) throw new AppError("overloaded");
  const found = await free(() => findOrAcquireFree(ctx, userId, request));
  if (found.acquired === null && waiting.pendingCount >= WAITING_MAX) throw new AppError("overloaded");
  const acquired = found.acquired ?? (await acquireWaiting(ctx, found));
  if (!acquired.alreadyConfirmed) await awaitSeal(ctx, acquired.voucher.id);
  return answer(ctx, acquired);
}

/** Bounds the connections for acquisitions: those that take an unlocked voucher within milliseconds, and those that wait for locks. */
export interface Acquisitions {
  free: LimitFunction;
  waiting: LimitFunction;
}

/** Opens the bounds of an API process: four connections and two. */
export function openAcquisitions(): Acquisitions {
  return { free: pLimit(4), waiting: pLimit(2) };
}

/** Thrown to roll back a transaction that found only locked vouchers. */
class NothingFree extends Error {}

/** What a request asks for: the key that makes it idempotent, and the source of its voucher. */
interface Wanted {
  acquisition: AcquisitionKey;
  source: Source;
}

/**
 * Finds the user's earlier acquisition, or acquires an unlocked voucher. `acquired` is null when that would mean waiting for a lock.
 * Uses one connection at a time.
 */
async function findOrAcquireFree(
  ctx: Deps,
  userId: string,
  request: AcquireRequest,
): Promise<{ acquired: Acquired } | ({ acquired: null } & Wanted)> {
  const paymentRef = request.by === "link" ? null : request.paymentRef;
  // A purchase is found by its payment alone. A claim is found by its product, which must be looked up first.
  if (paymentRef !== null) {
    const bought = await findAcquisition(ctx.pool, { kind: "buy", userId, paymentRef });
    if (bought !== null) return { acquired: { voucher: bought, alreadyConfirmed: true } };
  }
  const source = await findSource(ctx, userId, request);
  const acquisition: AcquisitionKey =
    paymentRef === null ? { kind: "claim", userId, productId: source.productId } : { kind: "buy", userId, paymentRef };
  const claimed = acquisition.kind === "claim" ? await findAcquisition(ctx.pool, acquisition) : null;
  if (claimed !== null) return { acquired: { voucher: claimed, alreadyConfirmed: true } };
  const acquired = await acquireFree(ctx, { acquisition, source });
  return acquired === null ? { acquired, acquisition, source } : { acquired };
}

/** Acquires an unlocked voucher, or returns null when that would mean waiting for a lock. */
async function acquireFree(ctx: Deps, { acquisition, source }: Wanted): Promise<Acquired | null> {
  try {
    return await readThenWrite(
      ctx.pool,
      (tx) => readOffers(tx, acquisition, source),
      (offers, tx) => pickAndAcquire(ctx, tx, { acquisition, source }, offers, false),
    );
  } catch (error) {
    if (error instanceof NothingFree || isLockTimeout(error) || isRetryable(error)) return null;
    throw error;
  }
}

/** Tries again and waits for locks: another transaction may roll back and leave its voucher. */
function acquireWaiting(ctx: Deps, { acquisition, source }: Wanted): Promise<Acquired> {
  const giveUpAt = performance.now() + LOCK_WAIT_MS;
  return runInTurn(
    ctx.acquisitions.waiting,
    async () => {
      try {
        return await readThenWrite(
          ctx.pool,
          (tx) => Promise.all([readOffers(tx, acquisition, source), waitForLocks(tx, LOCK_WAIT_MS)]),
          ([offers], tx) => pickAndAcquire(ctx, tx, { acquisition, source }, offers, true),
        );
      } catch (error) {
        throw isLockTimeout(error) || isRetryable(error) ? voucherBusy() : error;
      }
    },
    () => giveUpAt - performance.now(),
    () => {
      throw voucherBusy();
    },
  );
}

async function findSource(ctx: Pick<Deps, "pool">, userId: string, request: AcquireRequest): Promise<Source> {
  switch (request.by) {
    case "product":
      return { productId: request.productId, batchId: null, referral: null };
    case "listing": {
      const listed = await findListingBatch(ctx.pool, request.listingId, userId);
      if (listed === null) throw new AppError("listing_not_found");
      return { ...listed, referral: null };
    }
    case "link": {
      const { linkCode } = request;
      const link = await findLink(ctx.pool, linkCode);
      if (link === null) throw new AppError("link_not_found");
      return { productId: link.productId, batchId: null, referral: { linkCode, link } };
    }
  }
}

function readOffers(tx: Transaction, acquisition: AcquisitionKey, source: Source): Promise<ProductOffers | null> {
  const { productId, batchId, referral } = source;
  return findOffers(tx, acquisition.userId, productId, acquisition.kind, batchId, referral !== null);
}

/** Inserts the acquisition's key first, so that repeats wait for this transaction, and then picks a voucher. */
async function pickAndAcquire(
  ctx: Deps,
  tx: Transaction,
  { acquisition, source }: Wanted,
  offers: ProductOffers | null,
  waiting: boolean,
): Promise<Decided<Acquired>> {
  if (offers === null) throw new AppError("product_not_found");
  if (!(await insertAcquisition(tx, acquisition))) {
    const before = await findAcquisition(tx, acquisition);
    if (before === null) throw new Error("an acquisition was committed without its voucher");
    return { result: { voucher: before, alreadyConfirmed: true }, writes: [] };
  }
  const picked = await pick(tx, offers, source, waiting);
  if (picked === null) {
    const batchIds = openBatches(offers, source, offers.now).map(({ batchId }) => batchId);
    // A voucher that another transaction is acquiring still shows as pickable. If none does, waiting is useless.
    if (!waiting && (await isAnyPickable(tx, batchIds))) throw new NothingFree();
    throw new AppError("sold_out");
  }
  const { voucher, now } = picked;
  const event = insertPendingEvent({
    voucherId: voucher.id,
    sequence: voucher.lastSequence + 1,
    eventType: acquisition.kind === "claim" ? "voucher.instance.claimed" : "voucher.instance.bought",
    occurredAt: now,
    actorConnectedId: acquisition.userId,
    actorIsEmployee: offers.role !== null,
    data: {
      nonce: makeNonce(ctx.randomBytes),
      voucherCode: voucher.code,
      serial: voucher.serial,
      audience: picked.audience,
      audienceRule: picked.rule,
      contractId:
        picked.rule === "active_contract" ? offers.eligibility.contract?.id : source.referral?.link.contractId,
      referrer: source.referral?.link.referrerId,
      referralLink: source.referral?.linkCode,
      ...(acquisition.kind === "buy" && { paymentRef: acquisition.paymentRef, pricePaidUsd: voucher.priceUsd }),
    },
  });
  return {
    result: {
      voucher: { ...voucher, codeKey: normaliseCode(voucher.code), sandbox: offers.sandbox },
      alreadyConfirmed: false,
    },
    writes: [
      ...fillAcquisition(acquisition, voucher.id),
      ...acquireVoucherRow(voucher.id, voucher.lastSequence),
      ...event,
    ],
  };
}

interface LockedPick {
  voucher: LockedVoucher;
  now: Date;
}

interface Picked extends LockedPick {
  audience: Audience;
  rule: AudienceRule;
}

/** Locks a voucher that the user may acquire, from the first batch that has one. Returns null when none is left. */
async function pick(tx: Transaction, offers: ProductOffers, source: Source, waiting: boolean): Promise<Picked | null> {
  for (const { batchId, audience, rule } of openBatches(offers, source, offers.now)) {
    const picked = await pickFromBatch(tx, offers, source, batchId, waiting);
    if (picked !== null) return { ...picked, audience, rule };
  }
  return null;
}

async function pickFromBatch(
  tx: Transaction,
  offers: ProductOffers,
  source: Source,
  batchId: string,
  waiting: boolean,
): Promise<LockedPick | null> {
  const passedOver: string[] = [];
  while (passedOver.length < PASSED_OVER_MAX) {
    const voucherId = await pickVoucher(tx, batchId, passedOver, waiting);
    if (voucherId === null) return null;
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${voucherId} was not read`);
    // The window may have closed, or the voucher expired, during the wait for the lock.
    if (!openBatches(offers, source, now).some((batch) => batch.batchId === batchId)) return null;
    if (liveReservation(voucher.reservation, now) === null) return { voucher, now };
    passedOver.push(voucherId);
  }
  return null;
}

function openBatches({ offers, eligibility }: ProductOffers, { referral }: Source, now: Date) {
  if (referral !== null && !isContractActive(referral.link, now)) throw new AppError("link_not_found");
  const decision = decideOffers(offers, eligibility, now, referral !== null);
  if (decision.kind === "refused") throw new AppError(decision.code);
  return decision.batches;
}

/** Waits for the seal of the acquisition's event. If it takes too long or the queue is full, the event is sealed later. */
async function awaitSeal(ctx: Deps, voucherId: string): Promise<void> {
  if (!ctx.sealQueue.hasRoom) {
    ctx.log.warn({ voucherId }, "the seal queue is full: an event will be sealed later");
    return;
  }
  const sealed = await ctx.traces.sendJob(sealQueue.name, (traceparent) =>
    ctx.sealQueue.addAndWait(`${voucherId}-${crypto.randomUUID()}`, { voucherId }, SEAL_WAIT_MS, traceparent),
  );
  if (sealed.kind !== "reply") ctx.log.warn({ voucherId, sealed: sealed.kind }, "an event will be sealed later");
}

async function answer(ctx: Deps, { voucher: acquired, alreadyConfirmed }: Acquired): Promise<AcquireResponse> {
  const { id, organizationId, codeKey, sandbox } = acquired;
  const { now, voucher } = await ctx.voucherReads.submit({ organizationId, codeKey, ticket: null, externalRef: null });
  if (voucher === null) throw new Error(`the acquired voucher ${id} was not found`);
  return {
    voucher: viewVoucher(voucher, now),
    alreadyConfirmed,
    verifyUrl: verifyUrl(ctx, id),
    ...markSandbox(sandbox),
  };
}
