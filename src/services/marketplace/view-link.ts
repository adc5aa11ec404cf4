import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { readSources } from "../../db/acquisitions.ts";
import { findLinkedProduct, type LinkedProduct } from "../../db/contracts.ts";
import { isContractActive } from "../../domain/audience.ts";
import { decideOffers } from "../../domain/offer.ts";
import type { Bulkhead } from "../batches/bulkhead.ts";

/** What a referrer's link offers to anyone who opens it. */
export interface LinkOffer {
  product: LinkedProduct;
  /** `open`: a claim through the link would get a voucher now. */
  state: "open" | "window_closed" | "sold_out";
  /** `validUntil` of the batch that a claim tries first: the first one that has vouchers. Null unless `state` is `open`. */
  validUntil: Date | null;
  /** Whether the vouchers belong to a sandbox. */
  sandbox: boolean;
}

/** Reads what a referrer's link offers now. @throws AppError `link_not_found`, also while its contract is not active; `overloaded`. */
export async function viewLink(
  { pool, publicReads }: { pool: pg.Pool; publicReads: Bulkhead },
  linkCode: string,
): Promise<LinkOffer> {
  return publicReads(async () => {
    const [source] = await readSources(pool, [{ way: "link", id: linkCode, kind: "claim" }], []);
    const product = source?.product ? await findLinkedProduct(pool, linkCode) : null;
    if (!source?.product || !product || !isContractActive(product, source.now)) throw new AppError("link_not_found");
    const { sandbox } = source.product;
    const decision = decideOffers(source.offers, { isOwner: false, contract: null }, source.now, true);
    if (decision.kind === "refused") return { product, sandbox, state: "window_closed", validUntil: null };
    const next = decision.batches
      .map((batch) => source.offers.find(({ batchId }) => batchId === batch.batchId))
      .find((offer) => offer?.left);
    if (next === undefined) return { product, sandbox, state: "sold_out", validUntil: null };
    return { product, sandbox, state: "open", validUntil: next.validUntil };
  });
}
