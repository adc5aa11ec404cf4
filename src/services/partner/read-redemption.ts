import type pg from "pg";
import type { Config } from "../../config.ts";
import { AppError } from "../../contract/errors.ts";
import type { RedeemResponse } from "../../contract/redeem.ts";
import { readRedemptions } from "../../db/redemptions.ts";
import type { DeploymentIdentity } from "../../domain/deployment.ts";
import type { Caller } from "../auth/caller.ts";
import type { Bulkhead } from "../batches/bulkhead.ts";
import { confirmRead, type ReferenceEnds } from "../batches/end-references.ts";
import { redemptionResponse } from "./redeem-voucher.ts";

/** Reads a reference's redemption as a repeated redeem would return it. @throws AppError `redemption_not_found`, `overloaded`. */
export async function readRedemption(
  ctx: {
    pool: pg.Pool;
    deployment: DeploymentIdentity;
    config: Config;
    partnerCalls: Bulkhead;
    referenceEnds: ReferenceEnds;
  },
  { organizationId }: Caller,
  externalRef: string,
): Promise<RedeemResponse> {
  // Postgres has no text with NUL; no reference contains one.
  const refs = externalRef.includes("\0") ? [] : [{ organizationId, externalRef: externalRef.trim() }];
  const readFrom = ctx.deployment.origin;
  const [read] = await ctx.partnerCalls(() => readRedemptions(ctx.pool, refs));
  if (!read?.redemption) throw new AppError("redemption_not_found");
  await confirmRead(ctx, readFrom);
  return redemptionResponse(ctx, read.redemption, true);
}
