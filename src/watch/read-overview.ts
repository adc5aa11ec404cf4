import pTimeout, { TimeoutError } from "p-timeout";
import { selectOrganizationNames } from "../core/catalog/db/catalog.ts";
import { percentilesOf } from "../core/processes/latency-buckets.ts";
import { type ReportedProcess, readProcesses } from "../core/processes/read-processes.ts";
import { addOutcomes } from "../core/processes/redeem-outcomes.ts";
import { type ReportedCounts, readReported } from "../core/processes/reported-counts.ts";
import { countLiveReservations } from "../core/reserve/db/reservations.ts";
import { isDatabaseUnavailable } from "../platform/db/transaction.ts";
import { measureQueues } from "../platform/queues/measure-queues.ts";
import { mastersOf } from "../platform/redis/connections.ts";
import { type ActivityCount, readActivity, readPostgres, readStock } from "./db/activity.ts";
import { type OverviewDeps, STOCK, timeOf } from "./facts.ts";
import { lookForFaults } from "./find-attention.ts";
import { summarizeQueues } from "./summarize-queues.ts";

/**
 * Redemptions and claims, which are exact, and refusals and latencies as processes report them, of a minute or an hour.
 */
export type Counts = ReturnType<typeof merge>[number];

export type Overview = Awaited<ReturnType<typeof readOverview>>;

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
const RESERVATIONS_MAX = 100_000;
/** Organizations that can be chosen, the newest. */
const ORGANIZATIONS_MAX = 200;
/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Longest wait for Postgres. Milliseconds. */
const DATABASE_WAIT_MAX_MS = 4_000;
const LATENCY_MINUTES = 5;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * Reads what operators see at a glance, of an organization or of all but sandboxes. Processes, queues, servers and
 * faults are those of the whole deployment. What is read from a server is empty or null while it does not answer.
 */
export async function readOverview(ctx: OverviewDeps, organizationId: string | null) {
  const { redis, deployment, config } = ctx;
  const look = await lookForFaults(ctx, LOOK_MAX_AGE_MS);
  const database = await readDatabase(ctx, organizationId);
  const now = database?.now ?? timeOf(deployment);
  // Async: while the deployment's id is unknown, it throws, and the promise must reject instead.
  const inTime = <T>(read: () => Promise<T>, fallback: T) =>
    pTimeout((async () => read())(), { milliseconds: WAIT_MAX_MS }).catch((error): T => {
      ctx.log.debug({ err: error }, "cannot read a part of the overview");
      return fallback;
    });
  const reported = (span: "minute" | "hour", times: readonly Date[]) =>
    inTime<ReportedCounts[]>(() => readReported(redis, deployment, span, times, organizationId), []);
  const minuteTimes = timesUntil(now, MINUTE_MS, 60);
  const hourTimes = timesUntil(now, HOUR_MS, 48);
  const [ofMinutes, ofHours, processes, shards, servers] = await Promise.all([
    reported("minute", minuteTimes),
    reported("hour", hourTimes),
    inTime(() => readProcesses(redis, deployment), []),
    inTime(() => measureQueues(redis, deployment.id, config.queueShards), []),
    inTime(() => readRedisServers(ctx), []),
  ]);
  return {
    at: now,
    organizationId,
    /** Up to this time, redemptions and claims are complete. */
    completeUntil: database?.completeUntil ?? null,
    minutes: merge(minuteTimes, database?.minutes ?? null, ofMinutes),
    hours: merge(hourTimes, database?.hours ?? null, ofHours),
    /** Of the last five minutes. */
    latencyMs: percentilesOf(ofMinutes.slice(-LATENCY_MINUTES).flatMap(({ latencies }) => latencies)),
    /** Of the last minute. */
    redeems: sumRedeems(ctx, processes),
    liveReservations: database?.liveReservations ?? null,
    queues: summarizeQueues(shards, processes),
    stock: database?.stock ?? [],
    processes,
    look,
    postgres: database?.postgres ?? null,
    redis: servers,
    organizations: database?.organizations ?? [],
  };
}

/** What is read from Postgres, or null if it does not answer. One after the other, because all use a connection. */
async function readDatabase({ pool, log }: OverviewDeps, organizationId: string | null) {
  const read = async () => ({
    ...(await readActivity(pool, organizationId)),
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    stock: await readStock(pool, { organizationId, batchesMax: STOCK.batchesMax, leftMax: STOCK.leftMax }),
    postgres: await readPostgres(pool),
    organizations: await selectOrganizationNames(pool, ORGANIZATIONS_MAX),
  });
  return pTimeout(read(), { milliseconds: DATABASE_WAIT_MAX_MS }).catch((error): null => {
    if (!(error instanceof TimeoutError) && !isDatabaseUnavailable(error)) throw error;
    log.debug({ err: error }, "cannot read the overview's data");
    return null;
  });
}

/** The redeems of the last minute, as all API processes report them, and this one knows them. */
function sumRedeems({ report }: OverviewDeps, processes: readonly ReportedProcess[]) {
  const others = processes.filter(({ id, state }) => state === "up" && id !== report.self.id);
  return addOutcomes([report.redeems.read(), ...others.map(({ redeems }) => redeems)]).minute;
}

/** How old the faults on a page may be. Milliseconds. */
const LOOK_MAX_AGE_MS = 3_000;

/** The starts of the last spans, the present one included, the oldest first. */
function timesUntil(now: Date, lengthMs: number, count: number): Date[] {
  const last = now.getTime() - (now.getTime() % lengthMs);
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
}

/** @param counts null if they are not known. */
function merge(times: readonly Date[], counts: readonly ActivityCount[] | null, reported: readonly ReportedCounts[]) {
  const known = new Map(counts?.map((count) => [count.at.getTime(), count]));
  const none = counts === null ? null : 0;
  return times.map((at, index) => {
    const { redemptions, claims } = known.get(at.getTime()) ?? { redemptions: none, claims: none };
    const own = reported.slice(index, index + 1);
    return {
      at,
      redemptions,
      claims,
      refusals: own[0]?.refusals ?? 0,
      latencyMs: percentilesOf(own.flatMap(({ latencies }) => latencies)),
    };
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

/** The overview as programs read it. Refusals and latencies are approximate. */
export function viewOverview(overview: Overview) {
  const counts = ({ at, redemptions, claims, refusals }: Counts) => ({ at, redemptions, claims, refusals });
  return {
    at: overview.at,
    organization: overview.organizationId,
    completeUntil: overview.completeUntil,
    minutes: overview.minutes.map(counts),
    hours: overview.hours.map(counts),
    latencyMs: overview.latencyMs,
    redeems: { answered: overview.redeems.answered, unanswered: overview.redeems.unanswered },
    reservations: { live: overview.liveReservations },
    queues: overview.queues,
    stock: overview.stock.map(({ batchId, left, runsOutAt }) => ({ batchId, left, runsOutAt })),
    processes: overview.processes.map(({ role, host, pid, version, queues, since, state, endedAt, problem }) => {
      return { role, host, pid, version, queues, since, state, endedAt, problem };
    }),
    attention: overview.look.attention.map(({ page: _, ...fault }) => fault),
  };
}
