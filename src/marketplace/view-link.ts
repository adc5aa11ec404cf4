import type pg from "pg";
import type { Bulkhead, Requester } from "../core/callers/bulkhead.ts";
import { linkAddress } from "../core/voucher/codes.ts";
import { BrandedError } from "../pages/error-page.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox, pickFields } from "../platform/api/fields.ts";
import { type LinkResponse, linkResponse } from "./api/link.ts";
import { AVAILABLE_MAX } from "./api/listings.ts";
import { isContractActive } from "./audience.ts";
import { readSources } from "./db/acquisitions.ts";
import { findLinkedProduct, type LinkedProduct } from "./db/contracts.ts";
import { MARKETPLACE_ERRORS } from "./declared.ts";
import type { KeptCounts } from "./kept-counts.ts";
import { decideOffers } from "./offer.ts";

/** What a referrer's link offers to every visitor. */
export interface LinkOffer {
  product: LinkedProduct;
  /** `open`: a claim through the link would get a voucher now. */
  state: "open" | "window_closed" | "sold_out";
  /** `validUntil` of the first batch with vouchers that a claim would try. Null unless `state` is `open`. */
  validUntil: Date | null;
  /** The batches that have vouchers, in the order in which a claim tries them. */
  batchIds: string[];
  sandbox: boolean;
}

/** Maximum number of batches whose vouchers are counted for one link. */
const BATCHES_COUNTED_MAX = 100;

/**
 * Reads what a referrer's link offers now.
 * @throws AppError `link_not_found`, including when the link's contract is not active; `overloaded`.
 */
export async function viewLink(
  { pool, publicReads }: { pool: pg.Pool; publicReads: Bulkhead<"visitor"> },
  visitor: Requester<"visitor">,
  linkCode: string,
): Promise<LinkOffer> {
  return publicReads(visitor, async () => {
    const [source] = await readSources(pool, [{ way: "link", id: linkCode, kind: "claim" }], []);
    const product = source?.product ? await findLinkedProduct(pool, linkCode) : null;
    if (!source?.product || !product) throw new AppError(MARKETPLACE_ERRORS.link_not_found);
    if (!isContractActive(product, source.now)) throw new BrandedError(MARKETPLACE_ERRORS.link_not_found, product);
    const { sandbox } = source.product;
    const decision = decideOffers(source.offers, { isOwner: false, contract: null }, source.now, true);
    const nothing = { product, sandbox, validUntil: null, batchIds: [] };
    if (decision.kind === "refused") return { ...nothing, state: "window_closed" };
    const offers = new Map(source.offers.flatMap((offer) => (offer.supply === "left" ? [[offer.batchId, offer]] : [])));
    const batchIds = decision.batches.map(({ batchId }) => batchId).filter((batchId) => offers.has(batchId));
    const next = offers.get(batchIds[0] ?? "");
    if (next === undefined) return { ...nothing, state: "sold_out" };
    return { product, sandbox, state: "open", validUntil: next.validUntil, batchIds };
  });
}

/** What {@link viewLink} returns, as JSON for programs. @throws the errors of {@link viewLink}. */
export async function describeLink(
  ctx: Parameters<typeof viewLink>[0] & { keptCounts: KeptCounts; config: { baseUrl: string } },
  visitor: Requester<"visitor">,
  linkCode: string,
): Promise<LinkResponse> {
  const { product, state, validUntil, batchIds, sandbox } = await viewLink(ctx, visitor, linkCode);
  const counted = batchIds.slice(0, BATCHES_COUNTED_MAX);
  const counts = await Promise.all(counted.map((batchId) => ctx.keptCounts.read(batchId, visitor)));
  // Each of these batches has at least one voucher now, even if its count of up to 20 seconds ago is 0.
  const available = counts.reduce((sum, count) => sum + Math.max(1, count), 0);
  return pickFields(linkResponse, {
    ...product,
    code: linkCode,
    available: Math.min(available, AVAILABLE_MAX),
    validUntil: validUntil?.toISOString() ?? null,
    canClaim: state === "open",
    url: linkAddress(ctx.config, linkCode),
    ...markSandbox(sandbox),
  });
}
