import type pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import { Batcher } from "../../platform/batching/batcher.ts";
import type { Config } from "../../platform/config.ts";
import { mayBeFromOneItem } from "../../platform/db/transaction.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Caller } from "../keys/caller.ts";
import { formsOf } from "../voucher/references.ts";
import type { RedeemResponse } from "./api/redeem.ts";
import type { RedemptionsResponse } from "./api/redemptions.ts";
import type { CompleteUntil } from "./complete-until.ts";
import { type ExternalRef, type ReadRedemption, readRedemptions } from "./db/redemptions.ts";
import { viewListed } from "./list-redemptions.ts";
import { redemptionResponse } from "./redeem-voucher.ts";

/** Maximum number of references in one statement. */
const BATCH_MAX = 256;
/** Maximum number of reads that may wait in one process. */
const WAITING_MAX = 10_000;

/**
 * Batched reads of redemptions by reference. Partners read this way to learn the outcome after a timeout, so these
 * reads must not wait for the connections of unbatched calls.
 */
type RedemptionReads = Batcher<ExternalRef, ReadRedemption>;

/** Opens the batcher for reads of redemptions by reference. */
export function openRedemptionReads({ pool }: { pool: pg.Pool }): RedemptionReads {
  return new Batcher((refs) => readRedemptions(pool, refs), {
    batchMax: BATCH_MAX,
    waitingMax: WAITING_MAX,
    ownerOf: ({ organizationId }) => organizationId,
    splitOn: mayBeFromOneItem,
  });
}

/** What {@link readRedemption} needs. */
interface RedemptionDeps {
  config: Config;
  redemptionReads: RedemptionReads;
}

/**
 * Reads the redemption under a reference, in the form in which a repeated redeem would return it.
 * @throws AppError `redemption_not_found`, `unavailable`; BatcherFull.
 */
export async function readRedemption(
  ctx: RedemptionDeps & Confirming,
  caller: Caller,
  externalRef: string,
): Promise<RedeemResponse> {
  const redemption = await readConfirmed(ctx, () => findRedemption(ctx, caller, externalRef));
  if (redemption === null) throw new AppError("redemption_not_found");
  return redemption;
}

/**
 * Like {@link readRedemption}, but returns null if there is none. The caller must wait for the standbys.
 * @throws BatcherFull.
 */
export async function findRedemption(
  ctx: RedemptionDeps,
  caller: Caller,
  externalRef: string,
): Promise<RedeemResponse | null> {
  const redemption = await findByReference(ctx, caller, externalRef);
  return redemption && redemptionResponse(ctx, redemption, true);
}

/**
 * Reads the redemption under a reference as a page of the list of redemptions, with one entry or none. Unlike the list,
 * includes redemptions after `completeUntil`.
 * @throws AppError `unavailable`, `overloaded`; BatcherFull.
 */
export async function listRedemptionOf(
  ctx: RedemptionDeps & Confirming & { completeUntil: CompleteUntil },
  caller: Caller,
  externalRef: string,
): Promise<RedemptionsResponse> {
  const completeUntil = await ctx.completeUntil(caller);
  const found = await readConfirmed(ctx, () => findByReference(ctx, caller, externalRef));
  return {
    redemptions: found === null ? [] : [viewListed(ctx, found)],
    nextCursor: null,
    completeUntil: completeUntil.toISOString(),
  };
}

async function findByReference(
  ctx: Pick<RedemptionDeps, "redemptionReads">,
  { organizationId }: Caller,
  externalRef: string,
): Promise<ReadRedemption["redemption"]> {
  const refs = formsOf(externalRef).map((form) => ({ organizationId, externalRef: form }));
  // Submits all forms of the reference at once, so that one batch reads them.
  const reads = await Promise.all(refs.map((ref) => ctx.redemptionReads.submit(ref)));
  return reads.find(({ redemption }) => redemption !== null)?.redemption ?? null;
}
