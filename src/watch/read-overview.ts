import pTimeout, { TimeoutError } from "p-timeout";
import { selectOrganizationNames } from "../core/catalog/db/catalog.ts";
import { selectKeyNames } from "../core/keys/db/api-keys.ts";
import {
  answeredIn,
  busiestKeysIn,
  type Counts as CountFields,
  inLastMinute,
  isKnown,
  type KeyCalls,
  latencyIn,
  readCounts,
  refusalsIn,
  timesUntil,
  unansweredIn,
} from "../core/processes/minute-counts.ts";
import { countLiveReservations } from "../core/reserve/db/reservations.ts";
import { isDatabaseUnavailable } from "../platform/db/transaction.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import { mastersOf } from "../platform/redis/connections.ts";
import { type ActivityCount, readActivity, readPostgres, readStock } from "./db/activity.ts";
import { type FactDeps, nowOf, STOCK } from "./facts.ts";
import { inTime } from "./in-time.ts";
import { RESERVATIONS_MAX } from "./measure-backlog.ts";
import { summarizeQueues } from "./read-queues.ts";
import type { FaultWatch } from "./watch.ts";

/**
 * Counts of a minute or an hour: exact redemptions and claims, and approximate refusals and latencies. Null if unknown.
 */
export type PeriodCounts = ReturnType<typeof merge>[number];

export type Overview = Awaited<ReturnType<typeof readOverview>>;

export type OverviewDeps = Pick<FactDeps, "pool" | "redis" | "deployment" | "config" | "log"> & {
  watch: Pick<FaultWatch, "look">;
};

/** Maximum number of organizations to choose from, newest first. */
const ORGANIZATIONS_MAX = 200;
/** Maximum wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Maximum wait for Postgres. Milliseconds. */
const DATABASE_WAIT_MAX_MS = 4_000;
const LATENCY_MINUTES = 5;
const KEYS_SHOWN_MAX = 10;

/**
 * Reads the overview of an organization, or of all organizations except sandboxes. Processes, queues, servers and
 * faults are always those of the whole deployment. If a server does not return data, the data is empty or null.
 */
export async function readOverview(ctx: OverviewDeps, organizationId: string | null) {
  const { redis, deployment, config } = ctx;
  const { problems } = (await ctx.watch.look()).standing;
  const database = problems.postgres === null ? await readDatabase(ctx, organizationId) : null;
  const now = database?.now ?? nowOf(deployment);
  const inRedis = <T, F>(read: () => Promise<T>, fallback: F) => inTime(ctx.log, WAIT_MAX_MS, read, fallback);
  const minuteTimes = timesUntil(now, "minute", 60);
  const hourTimes = timesUntil(now, "hour", 48);
  const [ofMinutes, ofHours, shards, servers] = await Promise.all([
    inRedis(() => readCounts(redis, deployment, "minute", minuteTimes), null),
    inRedis(() => readCounts(redis, deployment, "hour", hourTimes), null),
    inRedis(() => measureQueues(redis, deployment.id, config), []),
    inRedis(() => readRedisServers(ctx), []),
  ]);
  const busiest = busiestKeysIn(ofMinutes ?? [], now).filter(
    (key) => organizationId === null || key.organizationId === organizationId,
  );
  const keys = await nameKeys(ctx, busiest.slice(0, KEYS_SHOWN_MAX), database !== null);
  // Reads the faults last, because the other reads may take seconds.
  const { attention, ended, standing } = await ctx.watch.look();
  const { canary, processes } = standing;
  return {
    at: now,
    organization: organizationId,
    /** The time before which redemptions and claims are completely counted. */
    completeUntil: database?.completeUntil ?? null,
    minutes: merge(minuteTimes, database, database?.minutes, ofMinutes, organizationId),
    hours: merge(hourTimes, database, database?.hours, ofHours, organizationId),
    /** The latencies of the last five minutes' redeems. */
    latencyMs: latencyIn((ofMinutes ?? []).slice(-LATENCY_MINUTES)),
    /** The redeems of the last minute. Null if unknown. */
    redeems: ofMinutes && {
      answered: inLastMinute(ofMinutes, now, answeredIn),
      unanswered: inLastMinute(ofMinutes, now, (counts) => unansweredIn(counts)),
    },
    /** The keys with the most calls in the last minute. Null if unknown. */
    keys: ofMinutes && keys,
    canary: {
      answeredAt: newestOf((processes ?? []).flatMap(({ canaryAt }) => canaryAt ?? [])),
      p50Ms: canary.latencyMs.p50,
      p99Ms: canary.latencyMs.p99,
    },
    reservations: { live: database?.liveReservations ?? null },
    queues: summarizeQueues(config.queues, shards, processes ?? []),
    stock: database?.stock ?? [],
    processes: (processes ?? []).map(({ isUp, ...one }) => ({
      ...one,
      state: isUp ? ("up" as const) : ("gone" as const),
    })),
    servers: { postgres: database?.postgres ?? null, redis: servers },
    attention,
    ended,
    organizations: database?.organizations ?? [],
  };
}

const newestOf = (times: readonly Date[]) =>
  times.length === 0 ? null : new Date(Math.max(...times.map((time) => time.getTime())));

/** Reads from Postgres. Null if it does not answer. One query after the other, because each uses a connection. */
function readDatabase(ctx: OverviewDeps, organizationId: string | null) {
  const { pool } = ctx;
  return inDatabase(ctx, async () => ({
    ...(await readActivity(pool, organizationId)),
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    stock: await readStock(pool, { organizationId, ...STOCK }),
    postgres: await readPostgres(pool),
    organizations: await selectOrganizationNames(pool, ORGANIZATIONS_MAX),
  }));
}

/** The keys with their labels and organizations' names, which are null if Postgres does not answer. */
async function nameKeys(ctx: OverviewDeps, keys: readonly KeyCalls[], isAnswering: boolean) {
  const ids = keys.map(({ keyId }) => keyId);
  const names = isAnswering && ids.length > 0 ? await inDatabase(ctx, () => selectKeyNames(ctx.pool, ids)) : null;
  return keys.map((key) => {
    const { label = null, organization = null } = names?.find(({ id }) => id === key.keyId) ?? {};
    return { ...key, label, organization };
  });
}

function inDatabase<Read>({ log }: OverviewDeps, read: () => Promise<Read>): Promise<Read | null> {
  return pTimeout(read(), { milliseconds: DATABASE_WAIT_MAX_MS }).catch((error): null => {
    if (!(error instanceof TimeoutError) && !isDatabaseUnavailable(error)) throw error;
    log.debug({ err: error }, "cannot read the overview's data");
    return null;
  });
}

/**
 * Merges counts of Postgres and Redis by period. Redemptions and claims are complete up to `completeUntil`. A period
 * without any shows 0 if it begins at most one period length after `completeUntil`, and null if it begins later.
 */
function merge(
  times: readonly Date[],
  counted: { completeUntil: Date } | null,
  counts: readonly ActivityCount[] | undefined,
  fields: readonly CountFields[] | null,
  organizationId: string | null,
) {
  const known = new Map(counts?.map((count) => [count.at.getTime(), count]));
  const lengthMs = Number(times[1]) - Number(times[0]);
  const knownUntilMs = counted === null ? Number.NEGATIVE_INFINITY : counted.completeUntil.getTime() + lengthMs;
  return times.map((at, index) => {
    const none = at.getTime() <= knownUntilMs ? 0 : null;
    const { redemptions, claims } = known.get(at.getTime()) ?? { redemptions: none, claims: none };
    const own = fields?.[index] ?? null;
    const isCounted = own !== null && isKnown(own);
    const refusals = isCounted ? refusalsIn(own, organizationId) : null;
    const unanswered = isCounted ? unansweredIn(own, organizationId) : null;
    return { at, redemptions, claims, refusals, unanswered, latencyMs: latencyIn(own === null ? [] : [own]) };
  });
}

async function readRedisServers({ redis }: OverviewDeps) {
  return Promise.all(
    mastersOf(redis).map(async (master) => {
      const info = await master.info();
      const read = (field: string) => new RegExp(`^${field}:(\\S+)`, "m").exec(info)?.[1] ?? "";
      return {
        address: `${master.options.host}:${master.options.port}`,
        version: read("redis_version"),
        memoryBytes: Number(read("used_memory")),
        clients: Number(read("connected_clients")),
      };
    }),
  );
}
