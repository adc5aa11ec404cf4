import type pg from "pg";
import type { Logger } from "pino";
import type { RandomBytes } from "../../platform/base32.ts";
import type { Config } from "../../platform/config.ts";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import type { Decided } from "../../platform/db/transaction.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import { type EventContent, nextEvent } from "../chain/chain.ts";
import { appendEvents, type EventSinks, openSinks, readPending } from "../chain/seal-events.ts";
import type { GroupCommitter } from "../commit/group-committer.ts";
import { openVoucherCommitter } from "../commit/voucher-committer.ts";
import { type CapLeft, keyOverCap, lockKeyCaps } from "../keys/db/api-keys.ts";
import { type Observing, observeBatches } from "../metrics/observe-batches.ts";
import { answerCanaries } from "../processes/db/processes.ts";
import { type EndedReservation, endReservations } from "../reserve/db/reservations.ts";
import { type Leases, releaseLease } from "../reserve/lease.ts";
import { expectedTokenHash, type TokenSecret } from "../reserve/reservation-token.ts";
import { makeRedeemCode } from "../voucher/codes.ts";
import { type LockedVoucher, type LockedVouchers, readLockedVouchers, redeemVouchers } from "../voucher/db/vouchers.ts";
import { liveReservation, type Reservation } from "../voucher/reservation.ts";
import { insertRedemptions, lockReferences, type NewRedemption, refKey } from "./db/redemptions.ts";
import type { CanaryJob, RedeemJob, RedeemReply } from "./job.ts";
import { type Confirmation, decideRedeem } from "./redeem.ts";

/** One attempt: its job, the job's id, and the id of the server from which the API read. */
type RedeemRequest = RedeemJob & { attemptId: string; origin: string };

/** A canary (a job that redeems nothing) as the committer gets it, without a voucher. */
type CanaryRequest = Omit<CanaryJob, "voucherId"> & { voucherId: null };

type Request = RedeemRequest | CanaryRequest;
const isRedeem = (request: Request): request is RedeemRequest => request.voucherId !== null;

/** A worker's reply, with the ticket of the reservation that the redemption consumed. */
interface RedeemJobResult {
  reply: RedeemReply;
  consumedTicket: string | null;
}

/** What decides a batch: the locked vouchers, the time after the locks, and the references' redemptions and ends. */
interface RedeemState extends LockedVouchers {
  /** The redemptions of the references, by {@link refKey}. */
  confirmations: Map<string, Confirmation>;
  /** Ids of the attempts whose references were ended after the attempts' first read. */
  ended: Set<string>;
  /** What is left of each key's daily limit, by key id. */
  caps: Map<string, CapLeft>;
  sinks: EventSinks;
}

type RedeemCommitter = GroupCommitter<Request, RedeemJobResult>;

interface DecidedRedeem {
  request: RedeemRequest;
  voucher: LockedVoucher;
  redemption: NewRedemption;
}

/** Opens a worker's group committer. Each redemption and its sealed event share one transaction. */
export function openRedeemCommitter(
  ctx: Observing & {
    pool: pg.Pool;
    config: Config;
    tokenSecrets: readonly TokenSecret[];
    randomBytes: RandomBytes;
    deployment: DatabaseFence;
    /** Called after a commit with events for webhook endpoints. */
    onAnnounced: () => void;
  },
): RedeemCommitter {
  // An API process may not know of a key's new daily limit. Then the database refuses a redemption above it, and names
  // the key. After that, this worker reads the key's limit itself, until the key has none.
  const newlyCapped = new Set<string>();
  return openVoucherCommitter({
    pool: ctx.pool,
    read: (tx, requests: readonly Request[]) => readRedeemState(tx, requests, newlyCapped),
    onFailed: (error) => {
      const keyId = keyOverCap(error);
      if (keyId !== null) newlyCapped.add(keyId);
    },
    decide: (requests, state, tx) => decideRequests(ctx, tx, requests, state),
    busy: { reply: { kind: "busy" }, consumedTicket: null },
    observer: observeBatches(ctx, "redeem"),
    lockWaitMs: Math.min(5_000, Math.ceil(ctx.config.redeemWaitMs / 2)),
    waitingMax: ctx.config.workerConcurrency,
    isBounded: true,
    ownerOf: ({ organizationId }) => organizationId,
  });
}

/** Runs one redeem job. Releases the lease in the background: a redeemed voucher is refused with or without it. */
export async function runRedeemJob(
  ctx: { redeemCommitter: RedeemCommitter; deployment: DeploymentIdentity; leases: Leases; log: Logger },
  attemptId: string,
  job: RedeemJob | CanaryJob,
): Promise<RedeemReply> {
  if ("processId" in job) return runCanary(ctx, job);
  // The worker has just checked that the job names this server.
  const { serverId: origin } = ctx.deployment;
  const { reply, consumedTicket } = await ctx.redeemCommitter.submit({ ...job, attemptId, origin });
  if (consumedTicket !== null) void releaseLease(ctx, job.voucherId, consumedTicket);
  return reply;
}

/** Commits a canary together with the redeems that are ready. Ignores errors, because a canary is never repeated. */
async function runCanary(
  { redeemCommitter, log }: { redeemCommitter: RedeemCommitter; log: Logger },
  job: CanaryJob,
): Promise<RedeemReply> {
  try {
    return (await redeemCommitter.submit({ ...job, voucherId: null })).reply;
  } catch (error) {
    log.debug({ err: error }, "a canary could not be committed");
    return { kind: "busy" };
  }
}

async function readRedeemState(
  tx: Transaction,
  all: readonly Request[],
  newlyCapped: Set<string>,
): Promise<RedeemState | null> {
  const requests = all.filter(isRedeem);
  if (requests.length === 0) return null;
  const capped = requests.filter((one) => one.capped || newlyCapped.has(one.keyId)).map(({ keyId }) => keyId);
  const [references, locked, sinks, caps] = await Promise.all([
    lockReferences(tx, requests),
    readLockedVouchers(tx, [...new Set(requests.map((request) => request.voucherId))]),
    openSinks(tx),
    capped.length === 0 ? new Map<string, CapLeft>() : lockKeyCaps(tx, capped),
  ]);
  for (const keyId of capped) if (!caps.has(keyId)) newlyCapped.delete(keyId);
  const confirmations = new Map<string, Confirmation>();
  const ended = new Set<string>();
  for (const { n, isEnded, confirmation } of references) {
    const request = requests[n] as RedeemRequest;
    if (confirmation !== null) confirmations.set(refKey(request), confirmation);
    if (isEnded) ended.add(request.attemptId);
  }
  return { ...locked, confirmations, ended, sinks, caps };
}

interface BatchContext {
  tokenSecrets: readonly TokenSecret[];
  randomBytes: RandomBytes;
  deployment: DatabaseFence;
  onAnnounced: () => void;
}

/**
 * Decides the redeems of a batch, and answers its canaries.
 * @param state null for a batch without redeems.
 */
async function decideRequests(
  ctx: BatchContext,
  tx: Transaction,
  requests: readonly Request[],
  state: RedeemState | null,
): Promise<Decided<RedeemJobResult[]>> {
  const redeems = requests.filter(isRedeem);
  const decided: Decided<RedeemJobResult[]> =
    state === null ? { result: [], writes: [] } : await redeemBatch(ctx, tx, redeems, state);
  if (redeems.length === requests.length) return decided;
  const asking = requests.flatMap((request) => (isRedeem(request) ? [] : [request.processId]));
  const answered = new Set(await answerCanaries(tx, [...new Set(asking)]));
  const results = decided.result.values();
  const result = requests.map((request): RedeemJobResult => {
    if (isRedeem(request)) return results.next().value as RedeemJobResult;
    return { reply: { kind: answered.has(request.processId) ? "canary" : "busy" }, consumedTicket: null };
  });
  return { ...decided, result };
}

/**
 * Decides requests for locked vouchers, one after another, on the state in memory. Writes all redemptions together. The
 * writes fail if another transaction has meanwhile used a reference, moved `closed_until` past the time of the
 * redemptions, or changed a reservation without the voucher's lock.
 */
async function redeemBatch(
  ctx: BatchContext,
  tx: Transaction,
  requests: readonly RedeemRequest[],
  state: RedeemState,
): Promise<Decided<RedeemJobResult[]>> {
  const { now, vouchers, sinks } = state;
  const requestedIds = new Set(requests.map((request) => request.voucherId));
  const expired = [...vouchers.values()].flatMap(({ id, reservation }): EndedReservation[] =>
    reservation !== null && requestedIds.has(id) && liveReservation(reservation, now) === null
      ? [{ ticket: reservation.ticket, state: "Expired" }]
      : [],
  );
  const { result, decided } = decideBatch(ctx, tx, requests, state);
  const chains = decided.map((one) => one.voucher);
  const pending = await readPending(tx, chains);
  const events = decided.map((one) => redeemedEvent(ctx, one, now));
  const appended = appendEvents(sinks, chains, pending, events);
  const redemptions = decided.map((one) => one.redemption);
  const consumed = redemptions.flatMap(({ ticket }): EndedReservation[] =>
    ticket ? [{ ticket, state: "Consumed" }] : [],
  );
  // Redemptions come first, because only their insert can wait for another transaction. While it waits, this
  // transaction has written nothing for which others would wait.
  const writes = [
    ...insertRedemptions(redemptions, now),
    ...endReservations([...consumed, ...expired], now),
    ...appended.writes,
    ...redeemVouchers(appended.advances, now),
  ];
  return { result, writes, afterCommit: appended.announces ? ctx.onAnnounced : undefined };
}

/** Decides each request, and updates the state in memory (voucher, reference, cap) with each new redemption. */
function decideBatch(
  ctx: BatchContext,
  tx: Transaction,
  requests: readonly RedeemRequest[],
  { now, vouchers, confirmations, ended, caps }: RedeemState,
): { result: RedeemJobResult[]; decided: DecidedRedeem[] } {
  const tokenHashOf = (reservation: Reservation) => expectedTokenHash(ctx.tokenSecrets, reservation);
  const decided: DecidedRedeem[] = [];
  const result = requests.map((request): RedeemJobResult => {
    const voucher = vouchers.get(request.voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${request.voucherId} was not read`);
    // Checks the organization again. The API has checked it, but the job came through Redis, which is not trusted.
    if (voucher.organizationId !== request.organizationId) {
      throw new Error(`voucher ${voucher.id} does not belong to the organization that redeems it`);
    }
    const confirmation = confirmations.get(refKey(request)) ?? null;
    // Compares the servers again, because the connection may have been opened to another server after the job began.
    const isForeign = ctx.deployment.serverIdOf(tx) !== request.origin;
    const cap = caps.get(request.keyId);
    const cents = Math.round(voucher.priceUsd * 100);
    const isOverCap = cap !== undefined && ((cap.redemptions ?? 1) < 1 || (cap.cents ?? cents) < cents);
    const attempt = { ...request, isOverCap, isEnded: isForeign || ended.has(request.attemptId) };
    const decision = decideRedeem(voucher, voucher.reservation, confirmation, attempt, now, tokenHashOf);
    switch (decision.kind) {
      case "redeem": {
        const ticket = decision.consumed?.ticket ?? null;
        const redemption = { ...request, ticket, redeemCode: makeRedeemCode(ctx.randomBytes) };
        decided.push({ request, voucher, redemption });
        // Changes the state in memory, because later requests of this batch must see the redemption.
        if (cap?.redemptions != null) cap.redemptions--;
        if (cap?.cents != null) cap.cents -= cents;
        vouchers.set(voucher.id, { ...voucher, status: "Redeemed", reservation: null });
        confirmations.set(refKey(request), { ...redemption, redeemedAt: now });
        return { reply: redeemed(redemption.redeemCode, now), consumedTicket: ticket };
      }
      case "redeemed_before":
        // The COMMIT of this transaction waits for the standbys, because its row lock is in the write-ahead log. That
        // is needed because the first delivery may have committed without waiting for them.
        return {
          reply: redeemed(decision.confirmation.redeemCode, decision.confirmation.redeemedAt),
          consumedTicket: null,
        };
      case "refused":
        return { reply: { kind: "refused", code: decision.code }, consumedTicket: null };
      case "over_cap":
        return { reply: { kind: "over_cap", retryAfterSeconds: secondsToMidnight(now) }, consumedTicket: null };
      default:
        return { reply: { kind: decision.kind }, consumedTicket: null };
    }
  });
  return { result, decided };
}

const DAY_SECONDS = 86_400;
/** Seconds from a time to the next midnight, UTC. */
const secondsToMidnight = (now: Date) => DAY_SECONDS - (Math.floor(now.getTime() / 1_000) % DAY_SECONDS);

function redeemed(redeemCode: string, redeemedAt: Date): RedeemReply {
  return { kind: "redeemed", redeemCode, redeemedAtMs: redeemedAt.getTime() };
}

function redeemedEvent(
  ctx: { randomBytes: RandomBytes },
  { request, voucher, redemption }: DecidedRedeem,
  redeemedAt: Date,
): EventContent {
  const event = nextEvent(ctx.randomBytes, voucher, "voucher.instance.redeemed", redeemedAt, {
    externalRef: request.externalRef,
    redeemCode: redemption.redeemCode,
    ticket: redemption.ticket,
    note: request.note ?? undefined,
    retailPriceUsd: voucher.retailPriceUsd,
    priceUsd: voucher.priceUsd,
  });
  return { ...event, actorConnectedId: request.keyId };
}
