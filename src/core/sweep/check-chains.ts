import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../platform/config.ts";
import { recordChainCheck } from "../chain/db/broken-chains.ts";
import { addResult, type VerifyResult, verifyNextChains } from "../chain/verify-chains.ts";
import { estimateVoucherCount } from "../voucher/db/voucher-ranges.ts";
import { findSweepPosition, moveSweepPosition } from "./db/sweep-positions.ts";

/** Minimum and maximum number of chains per pass. With a pass every 5 s, the minimum is 72 000 chains an hour. */
const CHAINS_MIN = 100;
const CHAINS_MAX = 5_000;

/** Maximum number of chains that are verified before the next check of the time. This takes some 100 ms. */
const PORTION = 500;

/**
 * Verifies the next chains in id order, and starts again after the last one. The number of chains grows with the time
 * since the last pass, so that all chains are usually verified within `chainCheckMs`. It takes longer after a pause,
 * because the number of chains per pass is limited, and before the first ANALYZE, because the number of all chains is
 * unknown. Logs each broken chain as an error, and records it as broken until a later check finds it intact.
 * @param untilMs the time on the monotonic clock after which no portion starts. At least one portion runs.
 */
export async function checkChains(
  ctx: { pool: pg.Pool; config: Config; log: Logger },
  untilMs: number,
): Promise<VerifyResult> {
  const before = await findSweepPosition(ctx.pool, "check_chains");
  const shareDue = (before?.ageMs ?? 0) / ctx.config.chainCheckMs;
  const due = Math.ceil((await estimateVoucherCount(ctx.pool)) * shareDue);
  let left = Math.min(Math.max(due, CHAINS_MIN), CHAINS_MAX);
  const total: VerifyResult = { vouchers: 0, events: 0, erased: 0, broken: [] };
  let afterId = before?.position ?? "";
  do {
    const limit = Math.min(left, PORTION);
    const { result, last } = await verifyNextChains(ctx, afterId, limit);
    for (const broken of result.broken) ctx.log.error(broken, "a chain is broken");
    const broken = result.broken.map(({ voucherId }) => voucherId);
    await recordChainCheck(ctx.pool, { afterId, lastId: last }, broken);
    afterId = result.vouchers < limit ? "" : last;
    await moveSweepPosition(ctx.pool, { task: "check_chains", position: afterId });
    addResult(total, result);
    left -= limit;
  } while (left > 0 && afterId !== "" && performance.now() < untilMs);
  return total;
}
