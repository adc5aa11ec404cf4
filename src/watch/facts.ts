import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import { findNewestPause } from "../acts/db/audit-entries.ts";
import { findOldestPendingAge } from "../core/chain/db/events.ts";
import { addCounts, type FaultCounts } from "../core/processes/fault-counts.ts";
import type { Percentiles } from "../core/processes/latency-buckets.ts";
import { type ProcessReport, UP_MS } from "../core/processes/process-report.ts";
import { type ReportedProcess, readProcesses } from "../core/processes/read-processes.ts";
import { addOutcomes, type RecentOutcomes } from "../core/processes/redeem-outcomes.ts";
import { readLatencies } from "../core/processes/reported-counts.ts";
import { type Probed, readinessOf } from "../core/servers/probe-servers.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import {
  measureQueues,
  type QueueBacklog,
  type RefusingShard,
  type ShardBacklog,
} from "../platform/queues/measure-queues.ts";
import type { QueueViews } from "../platform/queues/queue-views.ts";
import { listShards, type Shard } from "../platform/queues/shards.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { failingSinceOf } from "./alerts.ts";
import {
  type PostgresState,
  readActivity,
  readPostgres,
  readStock,
  type Stock,
  selectBrokenChains,
} from "./db/activity.ts";
import { readAlerts } from "./db/alerts.ts";
import type { Found } from "./found.ts";

export interface OverviewDeps {
  pool: pg.Pool;
  redis: RedisClient;
  deployment: DatabaseFence;
  config: Pick<Config, "queueShards" | "alerts">;
  queueViews: Pick<QueueViews, "findLastReply">;
  probeServers: () => Promise<Probed>;
  redeemQueue: { readonly hasOpened: boolean };
  report: Pick<ProcessReport, "self" | "redeems" | "readCounts" | "reportingMs" | "tell">;
  log: Logger;
  /** The readers of the wings. */
  readFinders: readonly ReadFinders[];
}

/** The data of a look. */
interface Gathered {
  now: Date;
  /** Why this process cannot use each server, in the words of its readiness; null for a usable one. */
  problems: { postgres: string | null; redis: string | null };
  /** Shards whose servers take no jobs while other shards' servers do. */
  refusing: readonly RefusingShard[];
  shards: readonly Shard[];
  clockAheadMs: number;
  /** The outcomes of all processes. Null if Redis does not answer: this process's own may differ from others'. */
  redeems: RecentOutcomes | null;
  /** The identity of this process. */
  self: ProcessReport["self"];
  /** The other API processes that report, as far as Redis knows. */
  otherApis: readonly ReportedProcess[];
  /** Null if not known: Redis does not answer, or the reports of other processes cannot have arrived yet. */
  processes: readonly ReportedProcess[] | null;
  /** The counts of all processes for the faults; null if Redis does not answer. */
  counts: FaultCounts | null;
  /** The latencies of the redeems of about five minutes; null if Redis does not answer. */
  latencyMs: Percentiles | null;
  /** The backlogs; null if Redis does not answer. */
  queues: readonly ShardBacklog[] | null;
  /** Who paused queues on a page of this service, and when. */
  pauses: readonly QueuePause[];
  /** Changes with each pass of the sweeper; null if it is not known. */
  sweepMark: string | null;
  /** The state of the server; null if Postgres does not answer. */
  postgres: PostgresState | null;
  /** The data of the database; null if Postgres does not answer. */
  database: DatabaseFacts | null;
}

/** The facts from which faults are judged. */
export interface Facts extends Gathered {
  /** Whether Redis shows no other process, but Postgres shows that one can serve requests and looks for faults. */
  isAlone: boolean;
  /** For how long the sweeper has made no pass; null if it is not known. Milliseconds. */
  unsweptMs: number | null;
  /** Whether looks have seen a pass of the sweeper. Otherwise the time without one may be longer. */
  hasSwept: boolean;
}

/**
 * Returns the faults that were found in the queues. Null, so that earlier faults stay, if none was found but servers
 * that do not answer may hide some.
 */
export function unlessHidden({ queues }: Facts, found: Found[]): Found[] | null {
  const isHidden = queues === null || queues.some((shard) => shard.queues === null);
  return found.length === 0 && isHidden ? null : found;
}

interface DatabaseFacts {
  now: Date;
  brokenChains: readonly { voucherId: string; since: Date }[];
  stock: readonly Stock[];
  /** Since when ALERT_URL does not accept messages; null if it does. */
  alertsFailingSince: Date | null;
  /** Age of the oldest event that waits for its seal. */
  sealLagMs: number;
  ofWings: Finders;
}

/** The names of faults that wings find. */
export type FaultOfWing =
  | "VouchersLogRefused"
  | "VouchersLogWitness"
  | "VouchersLogSetAside"
  | "VouchersLogStopped"
  | "VouchersLogLag"
  | "VouchersWebhooksLate"
  | "VouchersWebhooksFail"
  | "VouchersWebhookOutboxGrows"
  | "VouchersWebhookEndpointDisabled";

/** For each fault of a wing, a function that finds it in the data that was read. */
export type Finders = Readonly<Partial<Record<FaultOfWing, (limit: number) => Found[]>>>;

/** Reads the data from which the faults of a wing are judged. */
export type ReadFinders = (ctx: OverviewDeps) => Promise<Finders>;

/** The minutes whose redeems are read. The Prometheus alert has the same number. */
const LATENCY_MINUTES = 5;
/** Maximum number of faults of one kind. */
export const FAULTS_MAX = 20;
/**
 * Maximum number of batches whose stock is read, and the maximum count of vouchers of each: together at most two
 * million index entries, some 100 ms. Of every open batch, two more entries are read. A batch ends soon if it does
 * within `soonDays`.
 */
export const STOCK = { batchesMax: 100, leftMax: 20_000, soonDays: 7 };
/** Longest wait for the data of a server. Milliseconds. */
const WAIT_MAX_MS = 2_000;
/** Longest wait for the data of the database. It includes a wait for Redis. Milliseconds. */
const DATA_WAIT_MAX_MS = 5_000;
/** How long a process uses the data of the database again, which changes slowly and costs much. Milliseconds. */
const DATA_KEPT_MS = 15_000;

/** Returns whether this process can serve requests, and reports it to the others. */
export async function probeSelf({ probeServers, redeemQueue, report }: OverviewDeps) {
  const probed = await probeServers();
  const problems = readinessOf(probed, redeemQueue.hasOpened);
  const sentences = [problems.postgres, problems.redis].filter((problem) => problem !== null);
  report.tell(sentences.length === 0 ? null : sentences.join(" "));
  return { problems, refusing: probed.shards };
}

/**
 * Gathers the data, with null for what a server does not answer. Never rejects. @param maxAgeMs as in `lookForFaults`.
 */
export async function gatherFacts(
  ctx: OverviewDeps,
  { problems, refusing }: Awaited<ReturnType<typeof probeSelf>>,
  maxAgeMs: number,
): Promise<Gathered> {
  const { deployment, config, report } = ctx;
  const now = timeOf(deployment);
  const inTime = <T>(read: () => Promise<T>, milliseconds = WAIT_MAX_MS) =>
    pTimeout((async () => read())(), { milliseconds }).catch((error): null => {
      ctx.log.debug({ err: error }, "cannot read a fact");
      return null;
    });
  const ofPostgres = async <T>(read: () => Promise<T>, milliseconds?: number) =>
    problems.postgres === null ? inTime(read, milliseconds) : null;
  const [processes, latencyMs, queues, database] = await Promise.all([
    inTime(() => readProcesses(ctx.redis, deployment)),
    inTime(() => readLatencies(ctx.redis, deployment, now, LATENCY_MINUTES)),
    inTime(() => measureQueues(ctx.redis, deployment.id, config.queueShards.slice(0, 1))),
    ofPostgres(() => readData(ctx, maxAgeMs), DATA_WAIT_MAX_MS),
  ]);
  const mark = await ofPostgres(() => readActivity(ctx.pool, null));
  const postgres = await ofPostgres(() => readPostgres(ctx.pool));
  const paused = (queues ?? []).flatMap(({ queues }) => (queues ?? []).filter((one) => one.paused));
  const others = (processes ?? []).filter(({ state, id }) => state === "up" && id !== report.self.id);
  return {
    now,
    problems,
    postgres,
    database,
    queues,
    latencyMs,
    refusing,
    shards: knownId(deployment) === null ? [] : listShards(deployment.id, config.queueShards[0]),
    clockAheadMs: deployment.clock.aheadMs,
    redeems: processes === null ? null : addOutcomes([report.redeems.read(), ...others.map(({ redeems }) => redeems)]),
    self: report.self,
    // While Redis takes no writes, the last reports in it are old.
    otherApis: problems.redis === null ? others.filter(({ role }) => role === "api") : [],
    counts: processes === null ? null : addCounts([report.readCounts(), ...others.map(({ counts }) => counts)]),
    processes: report.reportingMs >= UP_MS ? processes : null,
    pauses: (await ofPostgres(() => readPauses(ctx.pool, namesOf(paused)))) ?? [],
    sweepMark: mark?.sweepMark ?? null,
  };
}

const namesOf = (backlogs: readonly QueueBacklog[]) => [...new Set(backlogs.map(({ queue }) => queue))];

/** The last pause or resumption of a queue by an operator on a page of this service. */
export interface QueuePause {
  queue: string;
  isPaused: boolean;
  by: string;
  reason: string | null;
  since: Date;
}

/** Reads one queue after the other, because each read uses a connection. */
export async function readPauses(pool: pg.Pool, queues: readonly string[]): Promise<QueuePause[]> {
  const pauses: QueuePause[] = [];
  for (const queue of queues) {
    const newest = await findNewestPause(pool, queue);
    if (newest === null) continue;
    const { command, osUser: by, reason, at: since } = newest;
    pauses.push({ queue, isPaused: command === "queue pause", by, reason, since });
  }
  return pauses;
}

/** The database's time, or this host's time before the database was reached. */
export function timeOf({ clock }: { clock: Pick<DatabaseFence["clock"], "steadyNow"> }): Date {
  try {
    return clock.steadyNow();
  } catch {
    return new Date();
  }
}

/** The deployment's id; null before the database was reached. */
export function knownId(deployment: DatabaseFence): string | null {
  try {
    return deployment.id;
  } catch {
    return null;
  }
}

async function readFailingAlerts(pool: pg.Pool): Promise<Date | null> {
  const { state } = await readAlerts(pool);
  return state === null ? null : failingSinceOf(state);
}

/** The data of each process's database, and when it was read, on the monotonic clock. */
const data = new WeakMap<DatabaseFence, { facts: DatabaseFacts; readAtMs: number }>();

/** Reads one part after the other, because each read uses a connection. */
async function readData(ctx: OverviewDeps, maxAgeMs: number): Promise<DatabaseFacts> {
  const { pool, deployment } = ctx;
  const known = data.get(deployment);
  if (maxAgeMs >= 0 && known !== undefined && performance.now() - known.readAtMs < DATA_KEPT_MS) return known.facts;
  const readAtMs = performance.now();
  const { now } = await readActivity(pool, null);
  const ofWings: Finders[] = [];
  for (const read of ctx.readFinders) ofWings.push(await read(ctx));
  const facts = {
    now,
    brokenChains: await selectBrokenChains(pool, FAULTS_MAX),
    stock: await readStock(pool, { organizationId: null, ...STOCK }),
    alertsFailingSince: ctx.config.alerts.url === null ? null : await readFailingAlerts(pool),
    sealLagMs: await findOldestPendingAge(pool),
    ofWings: Object.assign({}, ...ofWings),
  };
  data.set(deployment, { facts, readAtMs });
  return facts;
}
