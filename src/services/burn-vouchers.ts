import type { ServiceContext, WorkerContext } from "../context.ts";
import type { Transaction } from "../db/pool.ts";
import { findConfirmations, insertRedemptions, type NewRedemption, refKey } from "../db/redemptions.ts";
import { type EndedHold, endHolds } from "../db/reservations.ts";
import type { Writes } from "../db/statements.ts";
import type { Decided } from "../db/transaction.ts";
import { type LockedVoucher, type LockedVouchers, readLockedVouchers, redeemVouchers } from "../db/vouchers.ts";
import { type EventContent, makeNonce } from "../domain/chain.ts";
import { makeRedeemCode } from "../domain/codes.ts";
import { type Hold, liveHold } from "../domain/hold.ts";
import { type Confirmation, decideRedeem, type RedeemRequest } from "../domain/redeem.ts";
import { hashToken, reservationToken } from "../domain/reservation-token.ts";
import type { RedeemJob, RedeemReply } from "../queues/catalog.ts";
import { observeBatches } from "./observe-batches.ts";
import { giveLeaseBack } from "./reserve-voucher.ts";
import { appendSealed, headsOf, movesOf, sealPending, selectUnsealed } from "./seal-events.ts";
import { VoucherLanes } from "./voucher-lanes.ts";

/** A reply, and the ticket of the hold that the burn consumed. */
export interface BurnResult {
  reply: RedeemReply;
  consumedTicket: string | null;
}

/** What a batch is decided on: the database's time after the locks, the vouchers, and what the references stand for already. */
interface BurnState extends LockedVouchers {
  confirmations: Map<string, Confirmation>;
}

/** The group commit of a worker process. */
export type BurnLanes = VoucherLanes<RedeemRequest, BurnState, BurnResult>;

interface Burn {
  request: RedeemRequest;
  voucher: LockedVoucher;
  redemption: NewRedemption;
}

/** The group commit of a worker process. Burn and seal are one transaction: no redeemed voucher without its sealed event. */
export function openBurnLanes(
  ctx: Pick<ServiceContext, "pool" | "config" | "tokenSecrets" | "randomBytes" | "metrics" | "traces">,
): BurnLanes {
  return new VoucherLanes({
    pool: ctx.pool,
    read: readBurnState,
    decide: (requests, state, tx) => burnBatch(ctx, tx, requests, state),
    busy: { reply: { kind: "busy" }, consumedTicket: null },
    observer: observeBatches(ctx, "redeem"),
    lockWaitMs: Math.min(5_000, Math.ceil(ctx.config.redeemWaitMs / 2)),
    waitingMax: ctx.config.workerConcurrency,
  });
}

/**
 * Runs one redeem job. The lease of a consumed hold is given back behind the caller's back: it holds nobody up any more.
 */
export async function runRedeemJob(
  ctx: Pick<WorkerContext, "burnLanes" | "leases" | "log">,
  attemptId: string,
  job: RedeemJob,
): Promise<RedeemReply> {
  const { reply, consumedTicket } = await ctx.burnLanes.submit({ ...job, attemptId });
  if (consumedTicket !== null) void giveLeaseBack(ctx, job.voucherId, consumedTicket);
  return reply;
}

async function readBurnState(tx: Transaction, requests: readonly RedeemRequest[]): Promise<BurnState> {
  const [locked, confirmations] = await Promise.all([
    readLockedVouchers(tx, [...new Set(requests.map((request) => request.voucherId))]),
    findConfirmations(tx, requests),
  ]);
  return { ...locked, confirmations };
}

/**
 * Decides requests whose vouchers this transaction has locked, one after another on the state in memory; all burns are written together,
 * unless another transaction has confirmed a reference meanwhile or something moved a hold without the voucher's lock.
 */
async function burnBatch(
  ctx: Pick<WorkerContext, "tokenSecrets" | "randomBytes">,
  tx: Transaction,
  requests: readonly RedeemRequest[],
  { now, vouchers, confirmations }: BurnState,
): Promise<Decided<BurnResult[]>> {
  const decidedOn = new Set(requests.map((request) => request.voucherId));
  const expired = [...vouchers.values()].flatMap(({ id, hold }): EndedHold[] =>
    hold !== null && decidedOn.has(id) && liveHold(hold, now) === null
      ? [{ ticket: hold.ticket, state: "Expired" }]
      : [],
  );
  const expectedTokenHash = (hold: Hold) =>
    hashToken(reservationToken(ctx.tokenSecrets, hold.ticket, hold.tokenSecretId));

  const burns: Burn[] = [];
  const result = requests.map((request): BurnResult => {
    const voucher = vouchers.get(request.voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${request.voucherId} was not read`);
    // The API resolved the voucher within the caller's organization; Redis, which carried the job, is not trusted to say so.
    if (voucher.organizationId !== request.organizationId) {
      throw new Error(`the voucher ${voucher.id} is not of the organization that asks to redeem it`);
    }
    const confirmation = confirmations.get(refKey(request)) ?? null;
    const decision = decideRedeem(voucher, voucher.hold, confirmation, request, now, expectedTokenHash);
    switch (decision.kind) {
      case "burn": {
        const ticket = decision.consumed?.ticket ?? null;
        const redemption = { ...request, ticket, redeemCode: makeRedeemCode(ctx.randomBytes) };
        burns.push({ request, voucher, redemption });
        // What the next request in this batch must see.
        vouchers.set(voucher.id, { ...voucher, status: "Redeemed", hold: null });
        confirmations.set(refKey(request), { ...redemption, redeemedAt: now });
        return { reply: burnt(redemption.redeemCode, now), consumedTicket: ticket };
      }
      case "burnt_before":
        return {
          reply: burnt(decision.confirmation.redeemCode, decision.confirmation.redeemedAt),
          consumedTicket: null,
        };
      case "refused":
        return { reply: { kind: "refused", code: decision.code }, consumedTicket: null };
      default:
        return { reply: { kind: decision.kind }, consumedTicket: null };
    }
  });
  const pending = await selectUnsealed(
    tx,
    burns.map((burn) => burn.voucher),
  );
  return { result, writes: writeBurns(ctx, burns, expired, pending, now) };
}

function burnt(redeemCode: string, redeemedAt: Date): RedeemReply {
  return { kind: "burnt", redeemCode, redeemedAtMs: redeemedAt.getTime() };
}

/**
 * The burns, the ends of the holds that they consume and of those past their time, and behind what is Pending on their chains the events that say so. Redemptions
 * first: they alone can meet another transaction's, and those who wait for them then hold nothing else.
 */
function writeBurns(
  ctx: Pick<WorkerContext, "randomBytes">,
  burns: readonly Burn[],
  expired: readonly EndedHold[],
  pending: readonly EventContent[],
  now: Date,
): Writes {
  const redemptions = burns.map((burn) => burn.redemption);
  const consumed = redemptions.flatMap(({ ticket }): EndedHold[] => (ticket ? [{ ticket, state: "Consumed" }] : []));
  const chains = burns.map((burn) => burn.voucher);
  const heads = headsOf(chains);
  const seals = sealPending(heads, pending);
  const events = appendSealed(
    heads,
    burns.map((burn) => redeemedEvent(ctx, burn, now)),
  );
  return [
    ...insertRedemptions(redemptions, now),
    ...endHolds([...consumed, ...expired], now),
    ...seals,
    ...events,
    ...redeemVouchers(movesOf(chains, heads), now),
  ];
}

function redeemedEvent(
  ctx: Pick<WorkerContext, "randomBytes">,
  { request, voucher, redemption }: Burn,
  now: Date,
): EventContent {
  return {
    voucherId: voucher.id,
    sequence: voucher.lastSequence + 1,
    eventType: "voucher.instance.redeemed",
    occurredAt: now,
    actorConnectedId: request.keyId,
    actorIsEmployee: null,
    data: {
      nonce: makeNonce(ctx.randomBytes),
      voucherCode: voucher.code,
      serial: voucher.serial,
      externalRef: request.externalRef,
      redeemCode: redemption.redeemCode,
      ticket: redemption.ticket,
      note: request.note ?? undefined,
      retailPriceUsd: voucher.retailPriceUsd,
      priceUsd: voucher.priceUsd,
    },
  };
}
