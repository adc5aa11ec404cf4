import type { Stock } from "./db/activity.ts";
import { type Facts, STOCK, unlessHidden } from "./facts.ts";
import type { Found } from "./found.ts";

const DAY_MS = 86_400_000;

export function findFailedJobs(facts: Facts): Found[] | null {
  const { queues } = facts;
  if (queues === null) return null;
  const backlogs = queues.flatMap(({ queues }) => queues ?? []);
  const found = [...Map.groupBy(backlogs, ({ queue }) => queue)].flatMap(([subject, ofQueue]): Found[] => {
    const count = ofQueue.reduce((sum, { failed }) => sum + failed, 0);
    const what = `${count} ${count === 1 ? "job has" : "jobs have"} failed`;
    return count === 0 ? [] : [{ what, subject, page: ["queues"] }];
  });
  return unlessHidden(facts, found);
}

export function findBrokenChains({ database }: Facts): Found[] | null {
  if (database === null) return null;
  const what = "The history of a voucher does not verify";
  return database.brokenChains.map(({ voucherId, since }) => ({
    what,
    subject: voucherId,
    page: ["vouchers", voucherId],
    since,
  }));
}

/**
 * The fault ends only with a pass that was seen.
 * @param secondsMax the longest time without a pass of the sweeper that is no fault.
 */
export function findSilentSweeper({ unsweptMs, hasSwept }: Facts, secondsMax: number): Found[] | null {
  if (unsweptMs === null) return null;
  if (unsweptMs > secondsMax * 1_000) return [{ what: "The sweeper does not run", subject: "All organizations" }];
  return hasSwept ? [] : null;
}

/**
 * How long a backlog must last to be a fault, as in its Prometheus alert. A new worker may need minutes. Milliseconds.
 */
export const BACKLOG_MS = 300_000;

export function findSealLag({ database }: Facts, secondsMax: number): Found[] | null {
  if (database === null) return null;
  const isLate = database.sealLagMs > secondsMax * 1_000;
  return isLate ? [{ what: "Events wait for their seals", subject: "seal", confirmMs: BACKLOG_MS }] : [];
}

export function findFailingAlerts({ database }: Facts): Found[] | null {
  if (database === null) return null;
  const since = database.alertsFailingSince;
  return since === null ? [] : [{ what: "Messages about red faults do not arrive", subject: "ALERT_URL", since }];
}

export function findBatchEnds({ database }: Facts): Found[] | null {
  if (database === null) return null;
  return database.stock.flatMap((batch) => {
    const what = describeStock(batch, database.now);
    return what === null
      ? []
      : [{ what, subject: `${batch.brand}: ${batch.product}`, page: ["batches", batch.batchId] }];
  });
}

/** Why a batch's stock needs attention, or null. @param now the database's time, which decides when batches end. */
function describeStock({ left, endsAt, runsOutAt }: Stock, now: Date): string | null {
  if (left === 0) return "A batch is sold out";
  if (runsOutAt !== null && runsOutAt.getTime() - now.getTime() <= DAY_MS) return "A batch runs out within a day";
  if (endsAt.getTime() - now.getTime() <= STOCK.soonDays * DAY_MS) return "A batch ends within a week, with stock left";
  return null;
}
