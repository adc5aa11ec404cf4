import pLimit, { type LimitFunction } from "p-limit";
import type { ApiContext } from "../context.ts";
import { findLink, type ReferralLink } from "../db/contracts.ts";
import { insertPendingEvent } from "../db/events.ts";
import { findListingBatch } from "../db/listings.ts";
import type { Transaction } from "../db/pool.ts";
import {
  fillTaking,
  findTaking,
  insertTaking,
  isAnyPickable,
  type ProductOffers,
  pickVoucher,
  selectOffers,
  type TakenVoucher,
  type TakingKey,
  takeVoucherRow,
} from "../db/takings.ts";
import { type Decided, isLockTimeout, isRetryable, lookThenWrite, waitForLocks } from "../db/transaction.ts";
import { type LockedVoucher, readLockedVouchers } from "../db/vouchers.ts";
import { type AudienceRule, isContractActive } from "../domain/audience.ts";
import { makeNonce } from "../domain/chain.ts";
import { normaliseCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { liveHold } from "../domain/hold.ts";
import { decideSupply, type SupplyRefusal } from "../domain/supply.ts";
import type { Audience } from "../domain/voucher.ts";
import { inTurn } from "./in-turn.ts";
import { type VoucherView, verifyUrl, viewVoucher } from "./look-up-voucher.ts";
import { voucherBusy } from "./move-holds.ts";

/** The ways to supply (contract, "Referrer-only rules on open windows"). */
export type TakeRequest =
  | { by: "listing"; listingId: string; paymentRef: string }
  /** A claim without a payment, else a purchase. */
  | { by: "product"; productId: string; paymentRef: string | null }
  | { by: "link"; linkCode: string };

/** The answer to claim and buy. */
export interface TakeResult {
  voucher: VoucherView;
  alreadyConfirmed: boolean;
  verifyUrl: string;
}

/** Supply that a request leads to. */
interface Source {
  productId: string;
  /** One batch only, for a listing. */
  batchId: string | null;
  /** Who sent the user, when they came by a referrer's link. */
  referral: { linkCode: string; link: ReferralLink } | null;
}

interface Taken {
  voucher: TakenVoucher;
  alreadyConfirmed: boolean;
}

/** How long a taking waits for locks: for the same user's other call, and for the last vouchers when all are being taken. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** How long the answer waits for the event's seal. The voucher is taken either way, and the job goes on. Milliseconds. */
const SEAL_WAIT_MS = 1_000;
/** Vouchers that turn out to be held, one after another, before a batch counts as having none left to pick. */
const PASSED_OVER_MAX = 50;

type Deps = Pick<
  ApiContext,
  "pool" | "takings" | "sealQueue" | "voucherReads" | "randomBytes" | "config" | "log" | "traces"
>;

/**
 * Gives a user a voucher from an open window, once per claim or payment. A repeat gives the same voucher, whatever became of
 * audience, window and supply meanwhile.
 * @throws AppError `listing_not_found`, `product_not_found`, `link_not_found`, `referrers_only`, `window_closed`, `sold_out`,
 * `voucher_busy`, `overloaded`.
 */
export async function takeVoucher(ctx: Deps, userId: string, request: TakeRequest): Promise<TakeResult> {
  const paymentRef = request.by === "link" ? null : request.paymentRef;
  // A payment is known without what it was for; a claim is one of a product.
  if (paymentRef !== null) {
    const bought = await findTaking(ctx.pool, { kind: "buy", userId, paymentRef });
    if (bought !== null) return answer(ctx, { voucher: bought, alreadyConfirmed: true });
  }
  const source = await findSource(ctx, request);
  const taking: TakingKey =
    paymentRef === null ? { kind: "claim", userId, productId: source.productId } : { kind: "buy", userId, paymentRef };
  const claimed = taking.kind === "claim" ? await findTaking(ctx.pool, taking) : null;
  if (claimed !== null) return answer(ctx, { voucher: claimed, alreadyConfirmed: true });
  if (ctx.takings.free.pendingCount + ctx.takings.waiting.pendingCount >= WAITING_MAX) {
    throw new AppError("overloaded", "The service is busy. Please try again.", { retryAfterSeconds: 1 });
  }
  const taken =
    (await ctx.takings.free(() => takeFree(ctx, taking, source))) ?? (await takeWaiting(ctx, taking, source));
  if (!taken.alreadyConfirmed) await awaitSeal(ctx, taken.voucher.id);
  return answer(ctx, taken);
}

/** Takings that may wait in one process. */
const WAITING_MAX = 2_000;

/** The connections of takings: for those that find something free, which takes milliseconds, and for those that wait for locks. */
export interface Takings {
  free: LimitFunction;
  waiting: LimitFunction;
}

/** The limits of an API process: four connections and two. */
export function openTakings(): Takings {
  return { free: pLimit(4), waiting: pLimit(2) };
}

/** Thrown out of a transaction that found nothing free, so that it rolls back. */
class NothingFree extends Error {}

/** Takes what is free, or returns null when that needs waiting for somebody's lock. */
async function takeFree(ctx: Deps, taking: TakingKey, source: Source): Promise<Taken | null> {
  try {
    return await lookThenWrite(
      ctx.pool,
      (tx) => selectSupply(tx, taking, source),
      (supply, tx) => takeOnce(ctx, tx, taking, source, supply, false),
    );
  } catch (error) {
    if (error instanceof NothingFree || isLockTimeout(error) || isRetryable(error)) return null;
    throw error;
  }
}

/** Looks again, waiting for locks: what others are about to take may be left after all. Who waits too long for a turn gives up. */
function takeWaiting(ctx: Deps, taking: TakingKey, source: Source): Promise<Taken> {
  const giveUpAt = performance.now() + LOCK_WAIT_MS;
  return inTurn(
    ctx.takings.waiting,
    async () => {
      try {
        return await lookThenWrite(
          ctx.pool,
          (tx) => Promise.all([selectSupply(tx, taking, source), waitForLocks(tx, LOCK_WAIT_MS)]),
          ([supply], tx) => takeOnce(ctx, tx, taking, source, supply, true),
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

async function findSource(ctx: Pick<Deps, "pool">, request: TakeRequest): Promise<Source> {
  switch (request.by) {
    case "product":
      return { productId: request.productId, batchId: null, referral: null };
    case "listing": {
      const listed = await findListingBatch(ctx.pool, request.listingId);
      if (listed === null) throw new AppError("listing_not_found", "There is no such listing.");
      return { ...listed, referral: null };
    }
    case "link": {
      const { linkCode } = request;
      const link = await findLink(ctx.pool, linkCode);
      if (link === null) throw linkNotFound();
      return { productId: link.productId, batchId: null, referral: { linkCode, link } };
    }
  }
}

function linkNotFound(): AppError {
  return new AppError("link_not_found", "This link does not lead anywhere, or not any more.");
}

function selectSupply(tx: Transaction, taking: TakingKey, source: Source): Promise<ProductOffers | null> {
  return selectOffers(tx, taking.userId, source.productId, taking.kind, source.batchId);
}

/** Writes the user's key first, so that repeats wait here, then picks, then judges once more under the voucher's lock. */
async function takeOnce(
  ctx: Deps,
  tx: Transaction,
  taking: TakingKey,
  source: Source,
  supply: ProductOffers | null,
  waiting: boolean,
): Promise<Decided<Taken>> {
  if (supply === null) throw new AppError("product_not_found", "There is no such product.");
  if (!(await insertTaking(tx, taking))) {
    const before = await findTaking(tx, taking);
    if (before === null) throw new Error("a taking was committed without its voucher");
    return { result: { voucher: before, alreadyConfirmed: true }, writes: [] };
  }
  const picked = await pick(tx, supply, source, waiting);
  if (picked === null) {
    const batchIds = openBatches(supply, source, supply.now).map(({ batchId }) => batchId);
    // What others are about to take is still there to be seen; when nothing is, there is nothing to wait for.
    if (!waiting && (await isAnyPickable(tx, batchIds))) throw new NothingFree();
    throw new AppError("sold_out", "There is nothing left.");
  }
  const { voucher, now } = picked;
  const event = insertPendingEvent({
    voucherId: voucher.id,
    sequence: voucher.lastSequence + 1,
    eventType: taking.kind === "claim" ? "voucher.instance.claimed" : "voucher.instance.bought",
    occurredAt: now,
    actorConnectedId: taking.userId,
    actorIsEmployee: supply.role !== null,
    data: {
      nonce: makeNonce(ctx.randomBytes),
      voucherCode: voucher.code,
      serial: voucher.serial,
      audience: picked.audience,
      audienceRule: picked.rule,
      contractId: picked.rule === "active_contract" ? supply.standing.contract?.id : source.referral?.link.contractId,
      referrer: source.referral?.link.referrerId,
      referralLink: source.referral?.linkCode,
      ...(taking.kind === "buy" && { paymentRef: taking.paymentRef, pricePaidUsd: voucher.priceUsd }),
    },
  });
  return {
    result: { voucher: { ...voucher, codeKey: normaliseCode(voucher.code) }, alreadyConfirmed: false },
    writes: [...fillTaking(taking, voucher.id), ...takeVoucherRow(voucher.id, voucher.lastSequence), ...event],
  };
}

interface Picked {
  voucher: LockedVoucher;
  now: Date;
  audience: Audience;
  rule: AudienceRule;
}

/** Locks a voucher that may be taken, from the first batch that has one; null when none is left. */
async function pick(tx: Transaction, supply: ProductOffers, source: Source, waiting: boolean): Promise<Picked | null> {
  for (const { batchId, audience, rule } of openBatches(supply, source, supply.now)) {
    const passedOver: string[] = [];
    while (passedOver.length < PASSED_OVER_MAX) {
      const voucherId = await pickVoucher(tx, batchId, passedOver, waiting);
      if (voucherId === null) break;
      const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
      const voucher = vouchers.get(voucherId);
      if (voucher === undefined) throw new Error(`the locked voucher ${voucherId} was not read`);
      // The wait for the lock may have outlived the window or the voucher.
      const stillOpen = openBatches(supply, source, now).some((batch) => batch.batchId === batchId);
      if (!stillOpen) break;
      if (liveHold(voucher.hold, now) === null) return { voucher, now, audience, rule };
      passedOver.push(voucherId);
    }
  }
  return null;
}

function openBatches({ offers, standing }: ProductOffers, { referral }: Source, now: Date) {
  if (referral !== null && !isContractActive(referral.link, now)) throw linkNotFound();
  const decision = decideSupply(offers, standing, now, referral !== null);
  if (decision.kind === "refused") throw refusal(decision.code);
  return decision.batches;
}

const REFUSALS: Record<SupplyRefusal, string> = {
  referrers_only: "Only referrers with an active contract may take this voucher. Ask a referrer for their link.",
  window_closed: "This offer is not open at the moment.",
};

function refusal(code: SupplyRefusal): AppError {
  return new AppError(code, REFUSALS[code]);
}

async function awaitSeal(ctx: Deps, voucherId: string): Promise<void> {
  const sealed = await ctx.traces.ask("seal", (traceparent) =>
    ctx.sealQueue.ask(`${voucherId}-${crypto.randomUUID()}`, { voucherId }, SEAL_WAIT_MS, traceparent),
  );
  if (sealed.kind !== "reply") ctx.log.warn({ voucherId, sealed: sealed.kind }, "an event will be sealed later");
}

async function answer(ctx: Deps, { voucher: taken, alreadyConfirmed }: Taken): Promise<TakeResult> {
  const { id, organizationId, codeKey } = taken;
  const { now, voucher } = await ctx.voucherReads.submit({ organizationId, codeKey, ticket: null, externalRef: null });
  if (voucher === null) throw new Error(`the taken voucher ${id} could not be read`);
  return { voucher: viewVoucher(voucher, now), alreadyConfirmed, verifyUrl: verifyUrl(ctx, id) };
}
