import type pg from "pg";
import type { Logger } from "pino";
import { readProcesses, type ServiceProcess } from "../core/processes/db/processes.ts";
import { limitedKeysIn, readCounts, timesUntil } from "../core/processes/minute-counts.ts";
import type { ProcessRecord } from "../core/processes/process-record.ts";
import { readTokenReports, type TokenReport } from "../core/processes/token-reports.ts";
import type { Canary, CanaryState } from "../core/redeem/canary.ts";
import { type Probed, readinessOf } from "../core/servers/probe-servers.ts";
import type { Config } from "../platform/config.ts";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { measureQueues, type RefusingShard, type ShardBacklog } from "../platform/queues/measure-queues.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";
import type { QueueViews } from "../platform/queues/queue-views.ts";
import { listShards, type Shard } from "../platform/queues/shards.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { type PostgresState, readPostgres, type Stock, selectBrokenChains, selectUsedCaps } from "./db/activity.ts";
import { type RecordedFault, selectFaults } from "./db/faults.ts";
import { inTime } from "./in-time.ts";

/**
 * `red`: partners' calls fail, or the data may be wrong. `amber`: can wait for working hours. `grey`: worth knowing.
 */
export type Severity = RecordedFault["severity"];

/** A fault as one search finds it. */
export interface Finding {
  what: string;
  /** The person, organization or thing that is affected. */
  subject: string;
  /** The operator page of the subject, as segments after `/ops`. */
  page?: readonly string[];
  /** When the fault began. By default, when a search first found it. */
  since?: Date | null;
  /** The severity, if it differs from the severity of its kind. */
  severity?: Severity;
}

export interface FactDeps {
  pool: pg.Pool;
  redis: RedisClient;
  deployment: DatabaseFence;
  config: Pick<Config, "queueShards" | "queues">;
  probeServers: () => Promise<Probed>;
  redeemQueue: { readonly hasOpened: boolean };
  canary: Pick<Canary, "read">;
  process: Pick<ProcessRecord, "id" | "name" | "tell">;
  queueViews: Pick<QueueViews, "findLastReply">;
  log: Logger;
  faultsOfWings: readonly WingFaults[];
}

type GatherDeps = FactDeps & { readStock: () => Promise<Stock[]> };

/** The faults of a wing. */
export interface WingFaults<Kind extends string = string> {
  /** The severity of each kind. */
  severities: Readonly<Record<Kind, Severity>>;
  /** Finds the faults, by their kinds. */
  find(ctx: FactDeps): Promise<Readonly<Partial<Record<Kind, Finding[]>>>>;
}

/** What a process knows about its own state and about the other processes. */
export interface Standing {
  /** Why this process cannot use each server, in the words of its `/readyz`. Null for a usable server. */
  problems: { postgres: string | null; redis: string | null };
  /** Shards whose servers refuse jobs although the servers of other shards accept them. */
  refusing: readonly RefusingShard[];
  canary: CanaryState;
  /** All processes. Null if Postgres does not answer. */
  processes: readonly ServiceProcess[] | null;
}

/** The facts from which faults are found. */
export interface Facts extends Standing {
  now: Date;
  self: { id: string; name: string };
  /** Why this process cannot serve requests while other processes can. Null if it can. */
  unready: string | null;
  shards: readonly Shard[];
  clockAheadMs: number;
  /** All queues of the service. */
  settings: readonly QueueSettings[];
  /** The numbers of jobs of all queues, and the ages of the oldest ones, by shard. Null if Redis does not answer. */
  queues: readonly ShardBacklog[] | null;
  /** Facts from Postgres. Null if it does not answer. */
  database: DatabaseFacts | null;
  /** The keys that reach their rate limits. Null if Redis does not answer. */
  limitedKeys: ReturnType<typeof limitedKeysIn> | null;
  /** Why valid tokens were recently refused. Null if Redis does not answer. */
  tokenReports: readonly TokenReport[] | null;
}

interface DatabaseFacts {
  server: PostgresState;
  recorded: readonly RecordedFault[];
  brokenChains: readonly { voucherId: string; since: Date }[];
  /** Keys that have used most of a daily limit. */
  usedCaps: readonly { keyId: string; organizationId: string | null; isReached: boolean }[];
  stock: readonly Stock[];
  /** The faults of optional features (wings), by their kinds. */
  ofWings: Readonly<Record<string, Finding[] | undefined>>;
}

/** Maximum number of faults of one kind. */
export const FAULTS_MAX = 20;
/**
 * Maximum number of batches whose stock is read, and maximum number of vouchers counted in each. Together they limit a
 * read to two million index entries, or some 100 ms. Each open batch adds two entries. A batch ends soon if it ends
 * within `soonDays`.
 */
export const STOCK = { batchesMax: 100, leftMax: 20_000, soonDays: 7 };
/** Maximum wait for the facts of one server. Milliseconds. */
const WAIT_MAX_MS = 2_000;

export async function readStanding(ctx: FactDeps): Promise<Standing> {
  const probed = await ctx.probeServers();
  const problems = readinessOf(probed, ctx.redeemQueue.hasOpened);
  const processes =
    problems.postgres === null ? await inTime(ctx.log, WAIT_MAX_MS, () => readProcesses(ctx.pool), null) : null;
  return { problems, refusing: probed.shards, canary: ctx.canary.read(), processes };
}

/** Gathers the facts. A fact is null if its server does not answer in time. Never rejects. */
export async function gatherFacts(ctx: GatherDeps, standing: Standing, unready: string | null): Promise<Facts> {
  const { deployment, config, log } = ctx;
  const isUsable = standing.problems.postgres === null;
  const mayAnswer = standing.problems.redis === null;
  const newest = { ...config, queueShards: config.queueShards.slice(0, 1) };
  const measure = () => measureQueues(ctx.redis, deployment.id, newest);
  const countLimited = async () =>
    limitedKeysIn(await readCounts(ctx.redis, deployment, "minute", timesUntil(nowOf(deployment), "minute", 3)));
  const [queues, limitedKeys, tokenReports, database] = await Promise.all([
    mayAnswer ? inTime(log, WAIT_MAX_MS, measure, null) : null,
    mayAnswer ? inTime(log, WAIT_MAX_MS, countLimited, null) : null,
    mayAnswer ? inTime(log, WAIT_MAX_MS, () => readTokenReports(ctx.redis, deployment), null) : null,
    isUsable ? inTime(log, WAIT_MAX_MS, () => readDatabase(ctx), null) : null,
  ]);
  return {
    ...standing,
    now: nowOf(deployment),
    self: ctx.process,
    unready,
    shards: knownId(deployment) === null ? [] : listShards(deployment.id, config.queueShards[0]),
    clockAheadMs: deployment.clock.aheadMs,
    settings: config.queues,
    queues,
    limitedKeys,
    tokenReports,
    database,
  };
}

/** Reads the facts from Postgres one after the other, because each read uses a connection. */
async function readDatabase(ctx: GatherDeps): Promise<DatabaseFacts> {
  const ofWings: DatabaseFacts["ofWings"][] = [];
  for (const { find } of ctx.faultsOfWings) ofWings.push(await find(ctx));
  return {
    server: await readPostgres(ctx.pool),
    recorded: await selectFaults(ctx.pool),
    brokenChains: await selectBrokenChains(ctx.pool, FAULTS_MAX),
    usedCaps: await selectUsedCaps(ctx.pool, FAULTS_MAX),
    stock: await ctx.readStock(),
    ofWings: Object.assign({}, ...ofWings),
  };
}

/** The time on the database's clock, or on this host's clock before the database was first reached. */
export function nowOf({ clock }: { clock: Pick<DatabaseFence["clock"], "steadyNow"> }): Date {
  try {
    return clock.steadyNow();
  } catch {
    return new Date();
  }
}

/** The deployment's id. Null before the database was first reached. */
export function knownId(deployment: Pick<DatabaseFence, "id">): string | null {
  try {
    return deployment.id;
  } catch {
    return null;
  }
}
