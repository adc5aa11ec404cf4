import type { ApiMetrics } from "../../metrics/metrics.ts";

/** Where a redeem spent the time from adding its job to receiving the reply. Milliseconds. */
interface RedeemWait {
  waitedMs: number;
  /** From the creation of the job to a worker's start on it, by the worker's clock. */
  queuedMs: number;
  /** From there to the end of its transaction, by the worker's clock. */
  workedMs: number;
}

/** Records the phases of one redeem that got its reply. A difference between two hosts' clocks never makes a phase negative. */
export function recordRedeemWait(
  { redeemWait }: Pick<ApiMetrics, "redeemWait">,
  { waitedMs, queuedMs, workedMs }: RedeemWait,
): void {
  redeemWait.with("queue").observe(Math.max(0, queuedMs) / 1_000);
  redeemWait.with("transaction").observe(Math.max(0, workedMs) / 1_000);
  redeemWait.with("reply").observe(Math.max(0, waitedMs - queuedMs - workedMs) / 1_000);
}
