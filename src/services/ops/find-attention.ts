import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import {
  type PostgresState,
  readActivity,
  readPostgres,
  readStock,
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
/** The stock of a batch that ends or runs out within these times needs attention. Milliseconds. */
const ENDS_WITHIN_MS = 7 * DAY_MS;
const RUNS_OUT_WITHIN_MS = DAY_MS;
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
    const what = "The history of a voucher does not verify";
    found.push({ what, since, subject: voucherId, runbook: "VouchersChainBroken", page: ["vouchers", voucherId] });
  }
  const postgres = await readPostgres(pool);
  const missing = countMissingStandbys(postgres);
  if (missing > 0) found.push(fault("A synchronous standby is away", `${missing} missing`, "StandbyAway"));
  const { aheadMs } = deployment.clock;
  if (aheadMs > 0) {
    const what = `The database's clock has jumped ${Math.round(aheadMs / 1_000)} s ahead`;
    found.push(fault(what, "Postgres", "VouchersClockAhead"));
  }
  const { now: databaseNow, completeUntil } = await readActivity(pool, null);
  if (databaseNow.getTime() - completeUntil.getTime() > SWEEPER_SILENT_MAX_MS) {
    const since = completeUntil.getTime() === 0 ? null : completeUntil;
    const what = "The sweeper does not run";
    found.push({ what, since, subject: "All organizations", runbook: "VouchersSweeperStopped", page: null });
  }
  for (const { id, url, organization, since, enabled } of await selectFailingEndpoints(pool, FAULTS_MAX)) {
    found.push({
      what: enabled ? "A webhook endpoint fails" : "A webhook endpoint was disabled",
      since,
      subject: `${organization}: ${new URL(url).host}`,
      runbook: enabled ? "VouchersWebhooksFail" : "VouchersWebhookEndpointDisabled",
      page: ["webhooks", id],
    });
  }
  for (const batch of await readStock(pool, null, STOCK.batchesMax, STOCK.leftMax)) {
    const { batchId, brand, product, left, endsAt, runsOutAt } = batch;
    const within = (at: Date | null, ms: number) => at !== null && at.getTime() - now.getTime() <= ms;
    const what =
      left === 0
        ? "A batch is sold out"
        : within(runsOutAt, RUNS_OUT_WITHIN_MS)
          ? "A batch runs out within a day"
          : within(endsAt, ENDS_WITHIN_MS)
            ? "A batch ends within a week, with stock left"
            : null;
    if (what === null) continue;
    found.push({
      what,
      since: null,
      subject: `${brand}: ${product}`,
      runbook: "BatchEnds",
      page: ["batches", batchId],
    });
  }
  return found;
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
    const silent = shards.filter(({ queues }) => queues === null).map(({ shard }) => shard.name);
    const failed = Map.groupBy(
      shards.flatMap(({ queues }) => queues ?? []),
      ({ queue }) => queue,
    );
    const [current] = (await readDivisions(redis, deployment.id)).filter(
      ({ shards }) => shards === config.queueShards[0],
    );
    return [
      ...silent.map((subject) => fault("A Redis server does not answer", subject, "VouchersShardAway")),
      ...Array.from(
        failed,
        ([queue, backlogs]) => [queue, backlogs.reduce((sum, { failed }) => sum + failed, 0)] as const,
      )
        .filter(([, count]) => count > 0)
        .map(([queue, count]) =>
          fault(`${count} ${count === 1 ? "job has" : "jobs have"} failed`, queue, "VouchersJobsFail", ["queues"]),
        ),
      ...(current?.unserved ?? []).map((subject) =>
        fault("No worker serves a queue", subject, "VouchersShardUnserved"),
      ),
    ];
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
  if (obstacle !== null) {
    found.push(
      obstacle === "witnesses"
        ? fault("The log can publish no checkpoint", origin, "VouchersLogStopped", page)
        : fault("The log is refused", origin, "VouchersLogRefused", page),
    );
  }
  if (claims > 0) found.push(fault("A witness contradicts the log", origin, "VouchersLogWitness", page));
  if ((published?.lagMs ?? 0) > LOG_LAG_MAX_MS) found.push(fault("The log lags", origin, "VouchersLogLag", page));
  return found;
}

function fault(what: string, subject: string, runbook: string, page: string[] | null = null): Found {
  return { what, since: null, subject, runbook, page };
}
