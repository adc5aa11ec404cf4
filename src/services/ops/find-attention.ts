import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import {
  type PostgresState,
  readActivity,
  readPostgres,
  readStock,
  type Stock,
  selectBrokenChains,
  selectFailingEndpoints,
} from "../../db/activity.ts";
import type { Deployment } from "../../db/deployment.ts";
import { measureQueues } from "../../queues/measure-queues.ts";
import type { QueueViews } from "../../queues/queue-views.ts";
import { readDivisions } from "../../queues/read-shards.ts";
import type { RedisClient } from "../../redis/connections.ts";
import { readLogStatus } from "../log/read-log-status.ts";
import { reportPrefix } from "./process-report.ts";

/** Something that an operator should look at. */
export interface Attention {
  what: string;
  since: string;
  /** Whom or what it touches. */
  subject: string;
  /** The name of the runbook's entry. */
  runbook: string;
  /** The operator page of the subject, as segments after `/ops`; null without one. */
  page: string[] | null;
}

/** Every fault at one time. */
export interface Look {
  at: string;
  attention: Attention[];
}

/** A fault as it was found; without its beginning, that of the first look that found it counts. */
type Found = Omit<Attention, "since"> & { since: Date | null };

export interface OverviewDeps {
  pool: pg.Pool;
  redis: RedisClient;
  deployment: Deployment;
  config: Pick<Config, "queueShards">;
  queueViews: Pick<QueueViews, "findLastReply">;
  log: Logger;
}

/** Most faults of one kind. */
const FAULTS_MAX = 20;
/** Batches whose stock is read, the newest, and vouchers that are counted of each: two million index entries at most, some 100 ms. */
export const STOCK = { batchesMax: 100, leftMax: 20_000 };
const DAY_MS = 86_400_000;
/** As the alerts have it. Milliseconds. */
const LOG_LAG_MAX_MS = 60_000;
/** The sweeper runs every five seconds by default. Milliseconds. */
const SWEEPER_SILENT_MAX_MS = 60_000;
/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 2_000;

/**
 * The faults of the whole deployment, as a process found them at most `maxAgeMs` ago. Looks itself if none has, and remembers in Redis
 * since when each fault is known.
 */
export async function lookForFaults(ctx: OverviewDeps, maxAgeMs: number): Promise<Look> {
  const key = `${reportPrefix(ctx.deployment)}:attention`;
  const stored = await ctx.redis.get(key).catch(() => null);
  const last: Look | null = stored === null ? null : JSON.parse(stored);
  const now = ctx.deployment.clock.steadyNow();
  if (last !== null && now.getTime() - Date.parse(last.at) <= maxAgeMs) return last;
  const found = (await Promise.all([findInPostgres(ctx, now), findInRedis(ctx), findInLog(ctx)])).flat();
  const known = new Map(last?.attention.map((fault) => [nameOf(fault), fault.since]));
  const attention = found.map((fault) => ({
    ...fault,
    since: fault.since?.toISOString() ?? known.get(nameOf(fault)) ?? now.toISOString(),
  }));
  const look = { at: now.toISOString(), attention };
  await ctx.redis.set(key, JSON.stringify(look), "EX", 7 * 86_400).catch(() => null);
  return look;
}

const nameOf = ({ runbook, subject, page }: Omit<Attention, "since">) => JSON.stringify([runbook, subject, page]);

async function findInPostgres({ pool, deployment }: OverviewDeps, now: Date): Promise<Found[]> {
  const found: Found[] = [];
  for (const { voucherId, since } of await selectBrokenChains(pool, FAULTS_MAX)) {
    const page = ["vouchers", voucherId];
    found.push(fault("The history of a voucher does not verify", voucherId, "VouchersChainBroken", page, since));
  }
  const missing = countMissingStandbys(await readPostgres(pool));
  if (missing > 0) found.push(fault("A synchronous standby is away", `${missing} missing`, "StandbyAway"));
  const { aheadMs } = deployment.clock;
  if (aheadMs > 0) {
    const what = `The database's clock has jumped ${Math.round(aheadMs / 1_000)} s ahead`;
    found.push(fault(what, "Postgres", "VouchersClockAhead"));
  }
  const { now: databaseNow, completeUntil } = await readActivity(pool, null);
  if (databaseNow.getTime() - completeUntil.getTime() > SWEEPER_SILENT_MAX_MS) {
    const since = completeUntil.getTime() === 0 ? null : completeUntil;
    found.push(fault("The sweeper does not run", "All organizations", "VouchersSweeperStopped", null, since));
  }
  for (const { id, url, organization, since, enabled } of await selectFailingEndpoints(pool, FAULTS_MAX)) {
    const [what, runbook] = enabled
      ? (["A webhook endpoint fails", "VouchersWebhooksFail"] as const)
      : (["A webhook endpoint was disabled", "VouchersWebhookEndpointDisabled"] as const);
    found.push(fault(what, `${organization}: ${new URL(url).host}`, runbook, ["webhooks", id], since));
  }
  for (const batch of await readStock(pool, null, STOCK.batchesMax, STOCK.leftMax)) {
    const what = describeStock(batch, now);
    const subject = `${batch.brand}: ${batch.product}`;
    if (what !== null) found.push(fault(what, subject, "BatchEnds", ["batches", batch.batchId]));
  }
  return found;
}

/** Why a batch's stock needs attention, or null. */
function describeStock({ left, endsAt, runsOutAt }: Stock, now: Date): string | null {
  if (left === 0) return "A batch is sold out";
  if (runsOutAt !== null && runsOutAt.getTime() - now.getTime() <= DAY_MS) return "A batch runs out within a day";
  if (endsAt.getTime() - now.getTime() <= 7 * DAY_MS) return "A batch ends within a week, with stock left";
  return null;
}

/** How many standbys Postgres waits for in vain: synchronous_standby_names has their number, or names one of them. */
export function countMissingStandbys({ standbyNames, streaming }: Pick<PostgresState, "standbyNames" | "streaming">) {
  if (standbyNames.trim() === "") return 0;
  const required = Number(/^\s*(?:FIRST\s+|ANY\s+)?(\d+)\s*\(/i.exec(standbyNames)?.[1] ?? 1);
  return Math.max(0, required - streaming);
}

async function findInRedis({ redis, deployment, config }: OverviewDeps): Promise<Found[]> {
  const find = async (): Promise<Found[]> => {
    await redis.exists(reportPrefix(deployment));
    const shards = await measureQueues(redis, deployment.id, config.queueShards);
    const silent = shards.filter(({ queues }) => queues === null);
    const found = silent.map(({ shard }) => fault("A Redis server does not answer", shard.name, "VouchersShardAway"));
    const backlogs = shards.flatMap(({ queues }) => queues ?? []);
    for (const [queue, ofQueue] of Map.groupBy(backlogs, (backlog) => backlog.queue)) {
      const count = ofQueue.reduce((sum, { failed }) => sum + failed, 0);
      const what = `${count} ${count === 1 ? "job has" : "jobs have"} failed`;
      if (count > 0) found.push(fault(what, queue, "VouchersJobsFail", ["queues"]));
    }
    const divisions = await readDivisions(redis, deployment.id);
    const current = divisions.find((division) => division.shards === config.queueShards[0]);
    for (const queue of current?.unserved ?? []) {
      found.push(fault("No worker serves a queue", queue, "VouchersShardUnserved"));
    }
    return found;
  };
  return pTimeout(find(), { milliseconds: WAIT_MAX_MS }).catch(() => [
    fault("Redis does not answer", "Redis", "VouchersServerAway"),
  ]);
}

async function findInLog(ctx: OverviewDeps): Promise<Found[]> {
  const status = await readLogStatus(ctx);
  if (status === null) return [];
  const { origin, pass, published } = status;
  const page = ["log"];
  const { obstacle = null, claims = 0 } = pass?.report ?? {};
  const found: Found[] = [];
  if (obstacle === "witnesses") {
    found.push(fault("The log can publish no checkpoint", origin, "VouchersLogStopped", page));
  } else if (obstacle !== null) found.push(fault("The log is refused", origin, "VouchersLogRefused", page));
  if (claims > 0) found.push(fault("A witness contradicts the log", origin, "VouchersLogWitness", page));
  if ((published?.lagMs ?? 0) > LOG_LAG_MAX_MS) found.push(fault("The log lags", origin, "VouchersLogLag", page));
  return found;
}

function fault(
  what: string,
  subject: string,
  runbook: string,
  page: string[] | null = null,
  since: Date | null = null,
): Found {
  return { what, since, subject, runbook, page };
}
