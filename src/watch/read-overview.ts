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

/** Counts of a minute or an hour: exact redemptions and claims, and refusals and latencies that processes report. */
export type Counts = ReturnType<typeof merge>[number];

export type Overview = Awaited<ReturnType<typeof readOverview>>;

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
const RESERVATIONS_MAX = 100_000;
/** Maximum number of organizations to choose from: the newest ones. */
const ORGANIZATIONS_MAX = 200;
/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Longest wait for Postgres. Milliseconds. */
const DATABASE_WAIT_MAX_MS = 4_000;
const LATENCY_MINUTES = 5;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * Reads the overview of an organization, or of all except sandboxes. Processes, queues, servers and faults are those of
 * the whole deployment. What a server does not answer is empty or null.
 */
export async function readOverview(ctx: OverviewDeps, organizationId: string | null) {
  const { redis, deployment, config } = ctx;
  const look = await lookForFaults(ctx, LOOK_MAX_AGE_MS);
  const database = await readDatabase(ctx, organizationId);
  const now = database?.now ?? timeOf(deployment);
  // Async, because reading the id throws while it is unknown, and the returned promise must reject instead.
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
    /** Redemptions and claims before this time are completely counted. */
    completeUntil: database?.completeUntil ?? null,
    minutes: merge(minuteTimes, database?.minutes ?? null, ofMinutes),
    hours: merge(hourTimes, database?.hours ?? null, ofHours),
    /** The latencies of the last five minutes. */
    latencyMs: percentilesOf(ofMinutes.slice(-LATENCY_MINUTES).flatMap(({ latencies }) => latencies)),
    /** The outcomes of the last minute. */
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

/** Reads from Postgres; null if it does not answer. One query after the other, because each uses a connection. */
async function readDatabase({ pool, log }: OverviewDeps, organizationId: string | null) {
  const read = async () => ({
    ...(await readActivity(pool, organizationId)),
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    stock: await readStock(pool, { organizationId, ...STOCK }),
    postgres: await readPostgres(pool),
    organizations: await selectOrganizationNames(pool, ORGANIZATIONS_MAX),
  });
  return pTimeout(read(), { milliseconds: DATABASE_WAIT_MAX_MS }).catch((error): null => {
    if (!(error instanceof TimeoutError) && !isDatabaseUnavailable(error)) throw error;
    log.debug({ err: error }, "cannot read the overview's data");
    return null;
  });
}

/** The outcomes of the last minute's redeems, from the reports of other API processes and this process's own data. */
function sumRedeems({ report }: OverviewDeps, processes: readonly ReportedProcess[]) {
  const others = processes.filter(({ id, state }) => state === "up" && id !== report.self.id);
  return addOutcomes([report.redeems.read(), ...others.map(({ redeems }) => redeems)]).minute;
}

/** Maximum age of the faults on a page. Milliseconds. */
const LOOK_MAX_AGE_MS = 3_000;

/** The starts of the last spans, oldest first, including the present span. */
function timesUntil(now: Date, lengthMs: number, count: number): Date[] {
  const last = now.getTime() - (now.getTime() % lengthMs);
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
}

/** @param counts null if the counts are not known. */
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
