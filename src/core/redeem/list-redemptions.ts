import type pg from "pg";
import { invalidField, invalidFields } from "../../platform/api/errors.ts";
import { pickFields } from "../../platform/api/fields.ts";
import { problemIn } from "../../platform/api/problems.ts";
import type { Config } from "../../platform/config.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import type { Caller } from "../keys/caller.ts";
import type { TokenSecret } from "../reserve/reservation-token.ts";
import { signCursor, verifyCursor } from "../reserve/signed-cursor.ts";
import { verifyUrl } from "../voucher/resolve-voucher.ts";
import {
  type ListedRedemptionView,
  listedRedemption,
  type RedemptionsQuery,
  type RedemptionsResponse,
} from "./api/redemptions.ts";
import type { CompleteUntil } from "./complete-until.ts";
import { type ListedRedemption, type ListPosition, type SelectPage, selectRedemptions } from "./db/redemptions.ts";

/** A place in an organization's list of redemptions, with the list's time range. Milliseconds since 1970. */
interface RedemptionsCursor {
  redeemedAtMs: number;
  /** The last listed redemption's voucher. It orders redemptions of the same time. Empty if none was listed. */
  voucherId: string;
  fromMs: number | null;
  toMs: number | null;
}

interface Deps {
  config: Pick<Config, "baseUrl">;
  pool: pg.Pool;
  partnerCalls: Bulkhead<"organization">;
}

/**
 * Reads a page of an organization's redemptions. A caller that follows the cursor gets each redemption exactly once:
 * the list ends at a time before which the database accepts no further redemption. When the standbys have this time,
 * they have all redemptions before it. Works without Redis.
 * @throws AppError `invalid_request` for a cursor of another organization or range, `unavailable`, `overloaded`.
 */
export async function listRedemptions(
  ctx: Deps & { tokenSecrets: readonly TokenSecret[]; completeUntil: CompleteUntil },
  caller: Caller,
  query: RedemptionsQuery,
): Promise<RedemptionsResponse> {
  const { organizationId } = caller;
  const at = query.cursor === undefined ? startOf(query) : continueAt(ctx, organizationId, query);
  const completeUntil = await ctx.completeUntil(caller);
  const before = new Date(Math.min(at.toMs ?? Number.POSITIVE_INFINITY, completeUntil.getTime()));
  const after = { redeemedAt: new Date(at.redeemedAtMs), voucherId: at.voucherId };
  const found = await ctx.partnerCalls(caller, () =>
    selectRedemptions(ctx.pool, organizationId, after, before, query.limit + 1),
  );
  const page = found.slice(0, query.limit);
  const last = page.at(-1);
  const next = last && { ...at, redeemedAtMs: last.redeemedAt.getTime(), voucherId: last.voucherId };
  const isLast = found.length === page.length && at.toMs !== null && at.toMs < completeUntil.getTime();
  return {
    redemptions: page.map((redemption) => viewListed(ctx, redemption)),
    nextCursor: isLast ? null : writeCursor(ctx, organizationId, next ?? at),
    completeUntil: completeUntil.toISOString(),
  };
}

/** Maximum number of redemptions on one page when a whole range is read. */
const PAGE_MAX = 1_000;

/** All redemptions from `from` to `until`, which is the earlier of `to` and `completeUntil`. See {@link readPages}. */
export function readAllRedemptions(
  ctx: Deps,
  requester: Requester<"organization">,
  { from, to }: Pick<RedemptionsQuery, "from" | "to">,
  completeUntil: Date,
): { until: Date; pages: AsyncIterable<ListedRedemptionView[]> } {
  const until = to !== undefined && to < completeUntil ? to : completeUntil;
  async function* read() {
    for await (const page of readPages(ctx, requester, selectRedemptions, from ?? new Date(0), until))
      yield page.map((redemption) => viewListed(ctx, redemption));
  }
  return { until, pages: read() };
}

/**
 * The pages of redemptions from `from` to `until`. Reads the next page while the caller writes the current page. These
 * reads may wait for a connection for as long as necessary.
 * @throws AppError `unavailable`; CallerLeft.
 */
export async function* readPages<One extends ListPosition>(
  ctx: Pick<Deps, "pool" | "partnerCalls">,
  requester: Requester<"organization">,
  select: SelectPage<One>,
  from: Date,
  until: Date,
): AsyncGenerator<One[]> {
  const readAfter = (after: ListPosition) => {
    const read = () => select(ctx.pool, requester.organizationId, after, until, PAGE_MAX);
    const reading = ctx.partnerCalls(requester, read, { continues: true });
    // The read may fail while the caller still writes. Without a handler, the failure would end the process.
    reading.catch(() => undefined);
    return reading;
  };
  let reading = readAfter({ redeemedAt: from, voucherId: "" });
  try {
    for (;;) {
      const page = await reading;
      const last = page.length < PAGE_MAX ? undefined : page.at(-1);
      if (last !== undefined) reading = readAfter(last);
      yield page;
      if (last === undefined) return;
    }
  } finally {
    // If the file ends early, waits for the read of the next page, which is still running.
    await reading.catch(() => undefined);
  }
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
  const signed = verifyCursor(ctx.tokenSecrets, "redemptions", organizationId, cursor);
  if (signed === null) throw invalidField("cursor", "noCursor");
  const [redeemedAtMs, voucherId, fromMs, toMs] = signed;
  const at: RedemptionsCursor = { redeemedAtMs, voucherId, fromMs, toMs };
  const isOther = (given: Date | undefined, ms: number | null) => given !== undefined && given.getTime() !== ms;
  const others = [isOther(from, at.fromMs) && "from", isOther(to, at.toMs) && "to"].filter((name) => name !== false);
  if (others.length > 0) throw invalidFields(others.map((name) => [name, problemIn("differsFromCursor")]));
  return at;
}

function writeCursor(
  ctx: { tokenSecrets: readonly TokenSecret[] },
  organizationId: string,
  { redeemedAtMs, voucherId, fromMs, toMs }: RedemptionsCursor,
): string {
  return signCursor(ctx.tokenSecrets, "redemptions", organizationId, [redeemedAtMs, voucherId, fromMs, toMs]);
}

/** A redemption as the list shows it. */
export function viewListed(ctx: Pick<Deps, "config">, redemption: ListedRedemption): ListedRedemptionView {
  return pickFields(listedRedemption, {
    ...redemption,
    voucherInstanceId: redemption.voucherId,
    discountPriceUsd: redemption.priceUsd,
    redeemedAt: redemption.redeemedAt.toISOString(),
    verifyUrl: verifyUrl(ctx, redemption.voucherId),
  });
}
