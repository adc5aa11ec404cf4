import type { Config } from "../../config.ts";
import { AppError } from "../../contract/errors.ts";
import type { RedeemResponse } from "../../contract/redeem.ts";
import { readRedemptions } from "../../db/redemptions.ts";
import type { Caller } from "../auth/caller.ts";
import type { ConfirmedReads } from "../batches/end-references.ts";
import { redemptionResponse } from "./redeem-voucher.ts";

/** Reads a reference's redemption as a repeated redeem would return it. @throws AppError `redemption_not_found`, `unavailable`, `overloaded`. */
export async function readRedemption(
  ctx: { config: Config; confirmedReads: ConfirmedReads },
  { organizationId }: Caller,
  externalRef: string,
): Promise<RedeemResponse> {
  // Postgres has no text with NUL; no reference contains one.
  const refs = externalRef.includes("\0") ? [] : [{ organizationId, externalRef: externalRef.trim() }];
  const [read] = await ctx.confirmedReads((db) => readRedemptions(db, refs));
  if (!read?.redemption) throw new AppError("redemption_not_found");
  return redemptionResponse(ctx, read.redemption, true);
}
