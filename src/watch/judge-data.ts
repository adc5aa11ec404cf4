import type { Stock } from "./db/activity.ts";
import { type Facts, unlessHidden } from "./facts.ts";
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

/** What the log's last pass reports, on the log's page; null if it is not known. */
const ofLog =
  (
    what: string,
    isFault: (pass: { obstacle: string | null; claims: number; setAside: number }, lagMs: number) => boolean,
  ) =>
  ({ database }: Facts): Found[] | null => {
    if (database === null) return null;
    if (database.log === null) return [];
    const { origin, pass, published } = database.log;
    const { obstacle = null, claims = 0, setAside = 0 } = pass?.report ?? {};
    return isFault({ obstacle, claims, setAside }, published?.lagMs ?? 0)
      ? [{ what, subject: origin, page: ["log"] }]
      : [];
  };

export const findLogStopped = ofLog("The log can publish no checkpoint", ({ obstacle }) => obstacle === "witnesses");
export const findLogRefused = ofLog(
  "The log is refused",
  ({ obstacle }) => obstacle !== null && obstacle !== "witnesses",
);
export const findLogClaims = ofLog("A witness contradicts the log", ({ claims }) => claims > 0);
export const findSetAside = ofLog("Leaf batches are set aside", ({ setAside }) => setAside > 0);
export const findLogLag = (facts: Facts, secondsMax: number) =>
  ofLog("The log lags", (_, lagMs) => lagMs > secondsMax * 1_000)(facts);

/** What waits too long in Postgres. A worker that starts may need minutes for what has gathered. */
const ofBacklog =
  (what: string, subject: string, measure: (database: NonNullable<Facts["database"]>) => number) =>
  ({ database }: Facts, limit: number): Found[] | null => {
    if (database === null) return null;
    return measure(database) > limit ? [{ what, subject, confirmMs: BACKLOG_MS }] : [];
  };
/** As their alerts have it. Milliseconds. */
const BACKLOG_MS = 300_000;

export const findSealLag = ofBacklog("Events wait for their seals", "seal", ({ sealLagMs }) => sealLagMs / 1_000);
export const findLateWebhooks = ofBacklog(
  "Webhooks are late",
  "webhook",
  ({ webhooks }) => webhooks.oldestDueMs / 1_000,
);
export const findOutbox = ofBacklog("Webhooks are not prepared", "webhook", ({ webhooks }) => webhooks.outbox);

/** @param secondsMax the longest time without a pass. */
export function findSilentSweeper({ unsweptMs }: { unsweptMs: number | null }, secondsMax: number): Found[] | null {
  if (unsweptMs === null) return null;
  return unsweptMs > secondsMax * 1_000 ? [{ what: "The sweeper does not run", subject: "All organizations" }] : [];
}

export function findFailingAlerts({ database }: Facts): Found[] | null {
  if (database === null) return null;
  const since = database.alertsFailingSince;
  return since === null ? [] : [{ what: "Messages about red faults do not arrive", subject: "ALERT_URL", since }];
}

/** Endpoints that fail, or that were disabled for it. */
const ofEndpoints =
  (what: string, isEnabled: boolean) =>
  ({ database }: Facts): Found[] | null => {
    if (database === null) return null;
    const found = database.endpoints.filter(({ enabled }) => enabled === isEnabled);
    return found.map(({ id, url, organization, since }) => {
      return { what, subject: `${organization}: ${new URL(url).host}`, page: ["webhooks", id], since };
    });
  };

export const findFailingEndpoints = ofEndpoints("A webhook endpoint fails", true);
export const findDisabledEndpoints = ofEndpoints("A webhook endpoint was disabled", false);

export function findBatchEnds({ database }: Facts): Found[] | null {
  if (database === null) return null;
  return database.stock.flatMap((batch) => {
    const what = describeStock(batch, database.now);
    return what === null
      ? []
      : [{ what, subject: `${batch.brand}: ${batch.product}`, page: ["batches", batch.batchId] }];
  });
}

/** Why a batch's stock needs attention, or null. @param now the database's time, by which batches end. */
function describeStock({ left, endsAt, runsOutAt }: Stock, now: Date): string | null {
  if (left === 0) return "A batch is sold out";
  if (runsOutAt !== null && runsOutAt.getTime() - now.getTime() <= DAY_MS) return "A batch runs out within a day";
  if (endsAt.getTime() - now.getTime() <= 7 * DAY_MS) return "A batch ends within a week, with stock left";
  return null;
}
