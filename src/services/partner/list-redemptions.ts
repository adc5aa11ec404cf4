import type pg from "pg";
import type { Config } from "../../config.ts";
import { AppError } from "../../contract/errors.ts";
import { pickFields } from "../../contract/fields.ts";
import {
  type ListedRedemptionView,
  listedRedemption,
  type RedemptionsQuery,
  type RedemptionsResponse,
} from "../../contract/redemptions.ts";
import type { Deployment } from "../../db/deployment.ts";
import { closeRedemptions, type ListedRedemption, selectRedemptions } from "../../db/redemptions.ts";
import { openCursor, type RedemptionsCursor, sealCursor } from "../../domain/redemptions-cursor.ts";
import type { TokenSecret } from "../../domain/reservation-token.ts";
import type { Caller } from "../auth/caller.ts";
import type { ConfirmedReads } from "../batches/end-references.ts";
import { verifyUrl } from "../voucher/resolve-voucher.ts";

/** How long a process reuses the time before which redemptions are complete. An older time is correct, but lists fewer redemptions. Milliseconds. */
const COMPLETE_UNTIL_MAX_AGE_MS = 1_000;

/** Returns a function that moves the time before which redemptions are complete forward, at most once a second. The standbys have this time, too. */
export function openCompleteUntil(
  { pool, deployment }: { pool: pg.Pool; deployment: Pick<Deployment, "clock"> },
  confirmedReads: ConfirmedReads,
): () => Promise<Date> {
  let latest: { completeUntil: Promise<Date>; readAt: number } | undefined;
  return () => {
    const now = performance.now();
    if (latest === undefined || now - latest.readAt > COMPLETE_UNTIL_MAX_AGE_MS) {
      // A clock that jumped ahead would close times that are still ahead, for all organizations.
      const { clock } = deployment;
      const completeUntil = clock.ready().then(() => confirmedReads(() => closeRedemptions(pool, clock.steadyNow())));
      const reading = { completeUntil, readAt: now };
      latest = reading;
      completeUntil.catch(() => {
        if (latest === reading) latest = undefined;
      });
    }
    return latest.completeUntil;
  };
}

interface Deps {
  config: Pick<Config, "baseUrl">;
  /** They wait for the standbys, because a listed redemption is final. */
  confirmedReads: ConfirmedReads;
}

/**
 * Reads a page of an organization's redemptions. Following the cursor lists each redemption exactly once, because the database refuses
 * redemptions before the time up to which the list is complete. Works without Redis.
 * @throws AppError `invalid_request` for a cursor of another organization or range, `unavailable`, `overloaded`.
 */
export async function listRedemptions(
  ctx: Deps & { tokenSecrets: readonly TokenSecret[]; completeUntil: () => Promise<Date> },
  { organizationId }: Caller,
  query: RedemptionsQuery,
): Promise<RedemptionsResponse> {
  const at = query.cursor === undefined ? startOf(query) : continueAt(ctx, organizationId, query);
  const completeUntil = await ctx.completeUntil();
  const before = new Date(Math.min(at.toMs ?? Number.POSITIVE_INFINITY, completeUntil.getTime()));
  const after = { redeemedAt: new Date(at.redeemedAtMs), voucherId: at.voucherId };
  const found = await ctx.confirmedReads((db) => selectRedemptions(db, organizationId, after, before, query.limit + 1));
  const page = found.slice(0, query.limit);
  const last = page.at(-1);
  const next = last && { ...at, redeemedAtMs: last.redeemedAt.getTime(), voucherId: last.voucherId };
  const isLast = found.length === page.length && at.toMs !== null && at.toMs < completeUntil.getTime();
  return {
    redemptions: page.map((redemption) => viewListed(ctx, redemption)),
    nextCursor: isLast ? null : sealCursor(ctx.tokenSecrets, organizationId, next ?? at),
    completeUntil: completeUntil.toISOString(),
  };
}

/** Redemptions on one page of a whole range. */
const PAGE_MAX = 1_000;

/**
 * All redemptions from `from` to `until`: the earlier of `to` and `completeUntil`. Pages are read as they are used.
 * @throws AppError `unavailable`, `overloaded`.
 */
export function readAllRedemptions(
  ctx: Deps,
  organizationId: string,
  { from, to }: Pick<RedemptionsQuery, "from" | "to">,
  completeUntil: Date,
): { until: Date; pages: AsyncIterable<ListedRedemptionView[]> } {
  const until = to !== undefined && to < completeUntil ? to : completeUntil;
  async function* read() {
    let after = { redeemedAt: from ?? new Date(0), voucherId: "" };
    for (;;) {
      const page = await ctx.confirmedReads((db) => selectRedemptions(db, organizationId, after, until, PAGE_MAX));
      yield page.map((redemption) => viewListed(ctx, redemption));
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_MAX) return;
      after = last;
    }
  }
  return { until, pages: read() };
}

function startOf({ from, to }: RedemptionsQuery): RedemptionsCursor {
  return {
    redeemedAtMs: from?.getTime() ?? 0,
    voucherId: "",
    fromMs: from?.getTime() ?? null,
    toMs: to?.getTime() ?? null,
  };
}

function continueAt(
  ctx: { tokenSecrets: readonly TokenSecret[] },
  organizationId: string,
  { cursor = "", from, to }: RedemptionsQuery,
): RedemptionsCursor {
  const at = openCursor(ctx.tokenSecrets, organizationId, cursor);
  if (at === null) throw new AppError("invalid_request", "cursor is not a cursor of this list.");
  const isSame = (given: Date | undefined, ms: number | null) => given === undefined || given.getTime() === ms;
  if (!isSame(from, at.fromMs)) throw new AppError("invalid_request", "from differs from the cursor's.");
  if (!isSame(to, at.toMs)) throw new AppError("invalid_request", "to differs from the cursor's.");
  return at;
}

function viewListed(ctx: Pick<Deps, "config">, redemption: ListedRedemption): ListedRedemptionView {
  return pickFields(listedRedemption, {
    ...redemption,
    voucherInstanceId: redemption.voucherId,
    discountPriceUsd: redemption.priceUsd,
    redeemedAt: redemption.redeemedAt.toISOString(),
    verifyUrl: verifyUrl(ctx, redemption.voucherId),
  });
}
