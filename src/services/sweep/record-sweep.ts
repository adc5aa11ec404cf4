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
  requestWebhooks: "webhooksRequested",
  removeDeliveries: "deliveriesRemoved",
} as const satisfies Record<string, keyof SweepReport>;

/** Whether a pass changed nothing and met no fault, so that it needs no line in the log. Chains that verify are in the metrics. */
export function isIdle(report: SweepReport): boolean {
  const nothingDone = Object.values(ITEMS_OF).every((items) => report[items] === 0);
  return nothingDone && report.chainsBroken === 0 && Object.keys(report.failures).length === 0;
}

/** Records one pass of the sweeper. */
export function recordSweep(metrics: WorkerMetrics, report: SweepReport): void {
  metrics.sweepDuration.with().observe(report.durationMs / 1_000);
  for (const [task, items] of Object.entries(ITEMS_OF)) metrics.sweepItems.with(task).inc(report[items]);
  for (const task of Object.keys(report.failures)) metrics.sweepFailures.with(task).inc();
  metrics.chainsChecked.with().inc(report.chainsChecked);
}
