import { SWEEP_TASKS, type SweepReport } from "../../contract/jobs.ts";
import type { WorkerMetrics } from "../../metrics/metrics.ts";

/** Whether a pass changed nothing and found no fault. Verified chains do not count as a change. */
export function isIdle(report: SweepReport): boolean {
  const nothingDone = Object.values(SWEEP_TASKS).every((items) => report[items] === 0);
  return nothingDone && report.chainsBroken === 0 && Object.keys(report.failures).length === 0;
}

/** Records one pass of the sweeper. */
export function recordSweep(metrics: WorkerMetrics, report: SweepReport): void {
  metrics.sweepDuration.with().observe(report.durationMs / 1_000);
  for (const [task, items] of Object.entries(SWEEP_TASKS)) metrics.sweepItems.with(task).inc(report[items]);
  for (const task of Object.keys(report.failures)) metrics.sweepFailures.with(task).inc();
  metrics.chainsChecked.with().inc(report.chainsChecked);
}
