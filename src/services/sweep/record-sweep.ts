import type { SweepReport } from "../../contract/jobs.ts";
import type { WorkerMetrics } from "../../metrics/metrics.ts";

/** The count that each task reports. Checked chains have a metric of their own. */
const ITEMS_OF = {
  expireReservations: "reservationsExpired",
  restoreLeases: "leasesRestored",
  removeOrphanLeases: "leasesRemoved",
  recordExpiries: "expiriesRecorded",
  endContracts: "contractsEnded",
  requestSeals: "sealsRequested",
} as const satisfies Record<string, keyof SweepReport>;

/** Records one pass of the sweeper. */
export function recordSweep(metrics: WorkerMetrics, report: SweepReport): void {
  metrics.sweepDuration.with().observe(report.durationMs / 1_000);
  for (const [task, items] of Object.entries(ITEMS_OF)) metrics.sweepItems.with(task).inc(report[items]);
  for (const task of Object.keys(report.failures)) metrics.sweepFailures.with(task).inc();
  metrics.chainsChecked.with().inc(report.chainsChecked);
}
