import { nameProcess } from "../core/processes/process-record.ts";
import { SILENT_MS } from "../core/redeem/canary.ts";
import { redeemQueue } from "../core/redeem/job.ts";
import type { Stock } from "./db/activity.ts";
import { FAULTS_MAX, type Facts, type Finding, type Severity, STOCK, type WingFaults } from "./facts.ts";
import { backlogsOf, describePause, findCause, nameShards, withoutStop } from "./find-cause.ts";

/** All severities, lowest first. */
const SEVERITIES: readonly Severity[] = ["grey", "amber", "red"];

/** One kind of fault. */
export interface Fault {
  /** The name of the fault's runbook entry, which tells what to do. */
  name: string;
  severity: Severity;
  /** Finds the faults of this kind. Null if the facts do not show whether there are any: earlier faults then stay. */
  find: (facts: Facts) => Finding[] | null;
}

/** The kinds of faults of the core, in the order in which operators see them. */
const CORE_FAULTS: readonly Fault[] = [
  { name: "VouchersNothingRedeemed", severity: "red", find: findNothingRedeemed },
  { name: "VouchersServerAway", severity: "red", find: findUnready },
  { name: "VouchersShardAway", severity: "red", find: findSilentShards },
  { name: "VouchersQueuePaused", severity: "red", find: findPausedQueues },
  { name: "VouchersClockAhead", severity: "red", find: findClockAhead },
  { name: "VouchersQueueBacklog", severity: "amber", find: findWaitingJobs },
  { name: "VouchersJobsFail", severity: "amber", find: findFailedJobs },
  { name: "VouchersChainBroken", severity: "red", find: findBrokenChains },
  { name: "KeyMeetsLimit", severity: "amber", find: findLimitedKeys },
  { name: "VouchersSignInsFail", severity: "amber", find: findRefusedTokens },
  { name: "AlertsFail", severity: "amber", find: findFailingAlerts },
  { name: "BatchEnds", severity: "grey", find: findBatchEnds },
];

/**
 * All kinds of faults on the overview, those of optional features (wings) last. Each needs a person's attention within
 * a day. Prometheus has rules for further faults. A test compares this table with the runbook.
 */
export const allFaults = (ofWings: readonly WingFaults[]): readonly Fault[] => [
  ...CORE_FAULTS,
  ...ofWings.flatMap(({ severities }) =>
    Object.entries(severities).map(([name, severity]): Fault => {
      return { name, severity, find: ({ database }) => database && (database.ofWings[name] ?? []) };
    }),
  ),
];

/** Orders faults: red ones first, and faults of the same severity in the order of the table. */
export const compareFaults = (faults: readonly Fault[]) => {
  const placeOf = (name: string) => faults.findIndex((one) => one.name === name);
  return (a: Placed, b: Placed): number => {
    const bySeverity = SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity);
    return bySeverity || placeOf(a.runbook) - placeOf(b.runbook);
  };
};

interface Placed {
  severity: Severity;
  /** The name of the fault's kind. */
  runbook: string;
}

const EVERYONE = "All organizations";

/** Reports a fault if, for too long, no API process has got an answer to its test jobs (canaries). */
function findNothingRedeemed(facts: Facts): Finding[] {
  const silentMs = Math.min(facts.canary.silentMs, answeredElsewhereMs(facts));
  if (silentMs < SILENT_MS) return [];
  const cause = findCause(facts, namesOf(facts, [...facts.canary.shards.keys()]));
  const since = new Date(facts.now.getTime() - silentMs);
  return [{ what: `Nothing is redeemed: ${cause}`, subject: EVERYONE, since }];
}

const namesOf = ({ shards }: Facts, indexes: readonly number[]) =>
  shards.flatMap(({ index, name }) => (indexes.includes(index) ? [name] : []));

/** How long ago a canary of another process was last answered, in milliseconds. Infinity if no such answer is known. */
export function answeredElsewhereMs({ processes, self }: Pick<Facts, "processes" | "self">): number {
  const others = (processes ?? []).filter(({ id }) => id !== self.id);
  return Math.min(...others.map(({ canaryAgeMs }) => canaryAgeMs ?? Number.POSITIVE_INFINITY));
}

/** API processes that cannot serve requests while others can. Red if these are at least half of all. */
function findUnready(facts: Facts): Finding[] {
  const { processes, self, unready } = facts;
  if (findNothingRedeemed(facts).length > 0) return [];
  const others = (processes ?? []).filter((one) => one.role === "api" && one.isUp && one.id !== self.id);
  const apis = [{ name: self.name, problem: unready }, ...others.map((one) => ({ ...one, name: nameProcess(one) }))];
  const failing = apis.filter(({ problem }) => problem !== null);
  const severity = failing.length * 2 >= apis.length ? "red" : "amber";
  return failing.map(({ name, problem }) => {
    const what = `An API process cannot serve requests: ${withoutStop(problem ?? "")}`;
    return { what, subject: name, severity };
  });
}

/** Shards in which nothing is redeemed, while other shards redeem. */
function findSilentShards(facts: Facts): Finding[] {
  const { silentShards, shards } = facts.canary;
  if (silentShards.length === 0) return [];
  const names = namesOf(facts, silentShards);
  const what = `Nothing is redeemed${nameShards(names, shards.length)}: ${findCause(facts, names)}`;
  return [{ what, subject: "Redis", since: new Date(facts.now.getTime() - silentMsOf(facts)) }];
}

const silentMsOf = ({ canary: { shards, silentShards } }: Facts) =>
  Math.max(...silentShards.map((index) => shards[index] ?? 0));

/** The severity of a queue's fault. A fault of the redeem queue makes calls fail. Others are less severe. */
const severityOf = (queue: string) => (queue === redeemQueue.name ? {} : ({ severity: "amber" } as const));

function findPausedQueues(facts: Facts): Finding[] | null {
  const found = facts.settings.flatMap(({ name }): Finding[] => {
    if (!backlogsOf(facts, name).some(({ paused }) => paused)) return [];
    return [{ what: describePause(facts, name), subject: name, page: ["queues", name], ...severityOf(name) }];
  });
  return unlessHidden(facts, found);
}

/**
 * Maximum time that a job may wait before it is a fault. Longer than a deployment of a new release takes. Milliseconds.
 */
const WAITS_MAX_MS = 60_000;

/** Queues whose jobs wait too long. A queue that needs no worker is checked only while it has a worker. */
function findWaitingJobs(facts: Facts): Finding[] | null {
  const found = facts.settings.flatMap(({ name, needs }): Finding[] => {
    const isServed = (facts.processes ?? []).some(({ isUp, queues }) => isUp && queues.includes(name));
    const waitMs = Math.max(0, ...backlogsOf(facts, name).map(({ oldestWaitingMs }) => oldestWaitingMs));
    if (waitMs <= WAITS_MAX_MS || (needs !== undefined && !isServed)) return [];
    const why = isServed || facts.processes === null ? "" : ", and no worker runs for it";
    return [
      { what: `Jobs of the queue ${name} wait for more than a minute${why}`, subject: name, page: ["queues", name] },
    ];
  });
  return unlessHidden(facts, found);
}

function findFailedJobs(facts: Facts): Finding[] | null {
  const found = facts.settings.flatMap(({ name }): Finding[] => {
    const count = backlogsOf(facts, name).reduce((sum, { failed }) => sum + failed, 0);
    const what = `${count} ${count === 1 ? "job has" : "jobs have"} failed`;
    return count === 0 ? [] : [{ what, subject: name, page: ["queues"] }];
  });
  return unlessHidden(facts, found);
}

/** Returns the faults. Null if none is found while a Redis server does not answer: earlier faults then stay. */
function unlessHidden({ queues }: Facts, found: Finding[]): Finding[] | null {
  const isHidden = queues === null || queues.some((shard) => shard.queues === null);
  return found.length === 0 && isHidden ? null : found;
}

function findClockAhead({ clockAheadMs }: Facts): Finding[] {
  if (clockAheadMs <= 0) return [];
  return [{ what: `The database's clock has jumped ${Math.round(clockAheadMs / 1_000)} s ahead`, subject: "Postgres" }];
}

function findBrokenChains({ database }: Facts): Finding[] | null {
  if (database === null) return null;
  const what = "The history of a voucher does not verify";
  return database.brokenChains.map(({ voucherId, since }) => {
    return { what, subject: voucherId, page: ["vouchers", voucherId], since };
  });
}

/** Keys whose calls are refused now or soon. A key that reaches several limits has only one fault. */
function findLimitedKeys({ limitedKeys, database }: Facts): Finding[] | null {
  if (limitedKeys === null || database === null) return null;
  const found = new Map<string, Finding>();
  for (const { keyId, organizationId, isReached } of database.usedCaps) {
    const what = isReached ? "A key has reached its daily limit" : "A key has used 80 % of its daily limit";
    found.set(keyId, {
      what,
      subject: keyId,
      ...(organizationId !== null && { page: ["organizations", organizationId] }),
    });
  }
  for (const { organizationId, keyId } of limitedKeys.slice(0, FAULTS_MAX)) {
    const what = "A key has met its limit for more than a minute";
    if (!found.has(keyId)) found.set(keyId, { what, subject: keyId, page: ["organizations", organizationId, "calls"] });
  }
  return [...found.values()];
}

function findRefusedTokens({ tokenReports }: Facts): Finding[] | null {
  const severityOf = (variable: string): Severity => (variable.endsWith("JWKS_URL") ? "amber" : "grey");
  const found = tokenReports?.map(({ variable, what }) => ({
    what,
    subject: variable,
    severity: severityOf(variable),
  }));
  return found ?? null;
}

function findFailingAlerts({ database }: Facts): Finding[] | null {
  if (database === null) return null;
  const [since] = database.recorded.flatMap(({ failingSince }) => failingSince ?? []).toSorted((a, b) => +a - +b);
  return since === undefined ? [] : [{ what: "Messages about red faults do not arrive", subject: "ALERT_URL", since }];
}

function findBatchEnds({ database, now }: Facts): Finding[] | null {
  if (database === null) return null;
  return database.stock.flatMap((batch): Finding[] => {
    const what = describeStock(batch, now);
    if (what === null) return [];
    return [{ what, subject: `${batch.brand}: ${batch.product}`, page: ["batches", batch.batchId] }];
  });
}

const DAY_MS = 86_400_000;

/**
 * Why a batch's stock needs attention, or null.
 * @param now the database's time, which decides when batches end.
 */
function describeStock({ left, endsAt, runsOutAt }: Stock, now: Date): string | null {
  if (left === 0) return "A batch is sold out";
  if (runsOutAt !== null && runsOutAt.getTime() - now.getTime() <= DAY_MS) return "A batch runs out within a day";
  if (endsAt.getTime() - now.getTime() <= STOCK.soonDays * DAY_MS) return "A batch ends within a week, with stock left";
  return null;
}
