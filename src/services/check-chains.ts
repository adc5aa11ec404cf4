import type { WorkerContext } from "../context.ts";
import { findSweepPosition, moveSweepPosition } from "../db/sweep-positions.ts";
import { estimateVoucherCount } from "../db/vouchers.ts";
import { type VerifyResult, verifyChainsBehind } from "./verify-chains.ts";

/** Fewest and most chains that one pass verifies: the fewest get even a small database round in an hour. */
const CHAINS_MIN = 100;
const CHAINS_MAX = 5_000;

/**
 * Verifies the next chains in id order, going round, as many as the time since the last pass asks for when all are to be verified
 * within `chainCheckMs`. Each broken chain is logged as an error, in every round.
 */
export async function checkChains(ctx: Pick<WorkerContext, "pool" | "config" | "log">): Promise<VerifyResult> {
  const before = await findSweepPosition(ctx.pool, "check_chains");
  const share = (before?.ageMs ?? 0) / ctx.config.chainCheckMs;
  const due = Math.ceil((await estimateVoucherCount(ctx.pool)) * share);
  const limit = Math.min(Math.max(due, CHAINS_MIN), CHAINS_MAX);
  const { result, last } = await verifyChainsBehind(ctx, before?.position ?? "", limit);
  for (const broken of result.broken) ctx.log.error(broken, "a chain is broken");
  // After the last voucher the next pass begins anew.
  await moveSweepPosition(ctx.pool, "check_chains", result.vouchers < limit ? "" : last);
  return result;
}
