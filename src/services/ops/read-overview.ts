import pTimeout from "p-timeout";
import { type ActivityCount, readActivity, readPostgres, readStock } from "../../db/activity.ts";
import { selectOrganizationNames } from "../../db/catalog.ts";
import { countLiveReservations } from "../../db/reservations.ts";
import { QUEUES } from "../../queues/catalog.ts";
import { measureQueues } from "../../queues/measure-queues.ts";
import { mastersOf } from "../../redis/connections.ts";
import { lookForFaults, type OverviewDeps, STOCK } from "./find-attention.ts";
import { findPercentile, type ReportedCounts, readProcesses, readReported } from "./process-report.ts";

/** Redemptions and claims, which are exact, and refusals and latencies as processes report them, of a minute or an hour. */
export type Counts = ReturnType<typeof merge>[number];

export type Overview = Awaited<ReturnType<typeof readOverview>>;

/** Live reservations are counted up to this number, which takes Postgres about 25 ms. */
const RESERVATIONS_MAX = 100_000;
/** Organizations that can be chosen, the newest. */
const ORGANIZATIONS_MAX = 200;
/** Longest wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 1_500;
const LATENCY_MINUTES = 5;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/**
 * Reads what operators see at a glance, of an organization or of all but sandboxes. Processes, queues, servers and faults are those of the
 * whole deployment. What Redis would have told is empty or null while it does not answer.
 */
export async function readOverview(ctx: OverviewDeps, organizationId: string | null) {
  const { pool, redis, deployment, config } = ctx;
  const inTime = <T>(read: Promise<T>, fallback: T) =>
    pTimeout(read, { milliseconds: WAIT_MAX_MS }).catch((error): T => {
      ctx.log.debug({ err: error }, "cannot read a part of the overview");
      return fallback;
    });
  const { now, completeUntil, minutes, hours } = await readActivity(pool, organizationId);
  const reported = (span: "minute" | "hour", times: readonly Date[]) =>
    inTime<ReportedCounts[]>(readReported(redis, deployment, span, times, organizationId), []);
  const minuteTimes = timesUntil(now, MINUTE_MS, 60);
  const hourTimes = timesUntil(now, HOUR_MS, 48);
  const [ofMinutes, ofHours, processes, shards, servers] = await Promise.all([
    reported("minute", minuteTimes),
    reported("hour", hourTimes),
    inTime(readProcesses(redis, deployment), []),
    inTime(measureQueues(redis, deployment.id, config.queueShards), []),
    inTime(readRedisServers(ctx), []),
  ]);
  const backlogs = shards.flatMap(({ queues }) => queues ?? []);
  const isWhole = shards.length > 0 && shards.every(({ queues }) => queues !== null);
  return {
    at: now,
    organizationId,
    /** Up to this time, redemptions and claims are complete. */
    completeUntil,
    minutes: merge(minuteTimes, minutes, ofMinutes),
    hours: merge(hourTimes, hours, ofHours),
    /** Of the last five minutes. */
    latencyMs: percentilesOf(ofMinutes.slice(-LATENCY_MINUTES)),
    liveReservations: await countLiveReservations(pool, RESERVATIONS_MAX),
    /** Null if the server of a shard does not answer. */
    queues: QUEUES.map(({ name }) => {
      const sum = (state: "waiting" | "active" | "failed") =>
        isWhole ? backlogs.reduce((total, one) => total + (one.queue === name ? one[state] : 0), 0) : null;
      return { name, waiting: sum("waiting"), active: sum("active"), failed: sum("failed") };
    }),
    stock: await readStock(pool, organizationId, STOCK.batchesMax, STOCK.leftMax),
    processes,
    look: await lookForFaults(ctx, LOOK_MAX_AGE_MS),
    postgres: await readPostgres(pool),
    redis: servers,
    organizations: await selectOrganizationNames(pool, ORGANIZATIONS_MAX),
  };
}

/** How old the faults on a page may be. Milliseconds. */
const LOOK_MAX_AGE_MS = 4_000;

/** The starts of the last spans, the present one included, the oldest first. */
function timesUntil(now: Date, lengthMs: number, count: number): Date[] {
  const last = now.getTime() - (now.getTime() % lengthMs);
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
}

function merge(times: readonly Date[], counts: readonly ActivityCount[], reported: readonly ReportedCounts[]) {
  const known = new Map(counts.map((count) => [count.at.getTime(), count]));
  return times.map((at, index) => {
    const { redemptions = 0, claims = 0 } = known.get(at.getTime()) ?? {};
    const own = reported.slice(index, index + 1);
    return { at, redemptions, claims, refusals: own[0]?.refusals ?? 0, latencyMs: percentilesOf(own) };
  });
}

function percentilesOf(counts: readonly ReportedCounts[]) {
  return { p50: findPercentile(counts, 0.5), p99: findPercentile(counts, 0.99) };
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
    reservations: { live: overview.liveReservations },
    queues: overview.queues,
    stock: overview.stock.map(({ batchId, left, runsOutAt }) => ({ batchId, left, runsOutAt })),
    processes: overview.processes.map(({ cpu: _, memoryBytes: __, ...reported }) => reported),
    attention: overview.look.attention.map(({ page: _, ...fault }) => fault),
  };
}
