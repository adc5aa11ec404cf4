import type { Logger } from "pino";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { ReportedAs } from "../../platform/http/endpoint.ts";
import type { Closable } from "../../platform/lifetime.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { type BucketCount, bucketOf, type Percentiles, percentilesOf } from "./latency-buckets.ts";

/** Interval at which a process adds its counts. Milliseconds. */
const SEND_EVERY_MS = 5_000;
/** The prefix of everything that processes report. The braces keep it in one slot of a Redis Cluster. */
export const reportPrefix = ({ id }: { readonly id: string }) => `{pva:${id}:overview}`;

/** The length of a minute and an hour, and how long their counts are kept. Milliseconds. */
const SPANS = {
  minute: { lengthMs: 60_000, keptMs: 2 * 3_600_000 },
  hour: { lengthMs: 3_600_000, keptMs: 50 * 3_600_000 },
};

const keyOf = (deployment: Pick<DeploymentIdentity, "id">, span: string, atMs: number) =>
  `${reportPrefix(deployment)}:${span}:${atMs}`;

/** What is known of a request when its response has ended. */
interface Observed {
  reportedAs?: ReportedAs;
  organizationId?: string;
}

interface Deps {
  redis: RedisClient;
  deployment: DatabaseFence;
  log: Logger;
}

/**
 * Counts refusals, latencies of redeems and times of jobs, for the plots of operators. Each process adds its counts of
 * a minute and an hour to those of the others in Redis. They are approximate: what Redis does not take is lost.
 */
export class MinuteCounts implements Closable {
  readonly #ctx: Deps;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, number>();

  constructor(ctx: Deps) {
    this.#ctx = ctx;
    this.#timer = setInterval(() => void this.send(), SEND_EVERY_MS).unref();
  }

  /** Counts a response. */
  observe({ reportedAs, organizationId }: Observed, status: number, durationMs: number): void {
    if (reportedAs === undefined || reportedAs === "probe") return;
    if (reportedAs === "redemption" && status !== 499) {
      this.#add(`latency ${bucketOf(durationMs)}`);
      if (status >= 500) this.#add("unanswered");
    }
    if (status < 400 || status > 498) return;
    this.#add("refusals");
    if (organizationId !== undefined) this.#add(`refusals ${organizationId}`);
  }

  /** Counts a job that has ended. @param waitedMs null if the wait is not known, because the job was tried before. */
  observeJob(queue: string, waitedMs: number | null, workedMs: number): void {
    if (waitedMs !== null) this.#add(`${queue} waited ${bucketOf(waitedMs)}`);
    this.#add(`${queue} worked ${bucketOf(workedMs)}`);
  }

  /** Adds the counts to those in Redis. Never rejects. */
  async send(): Promise<void> {
    const { redis, deployment, log } = this.#ctx;
    const counted = this.#counts;
    if (counted.size === 0) return;
    this.#counts = new Map();
    try {
      const nowMs = deployment.clock.steadyNow().getTime();
      const sent = redis.pipeline();
      for (const [span, { lengthMs, keptMs }] of Object.entries(SPANS)) {
        const key = keyOf(deployment, span, nowMs - (nowMs % lengthMs));
        for (const [field, count] of counted) sent.hincrby(key, field, count);
        sent.pexpire(key, keptMs);
      }
      await sent.exec();
    } catch (error) {
      log.debug({ err: error }, "counts were lost");
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.send();
  }

  #add(field: string): void {
    this.#counts.set(field, (this.#counts.get(field) ?? 0) + 1);
  }
}

/** The counts of a minute or an hour, by field. */
export type Counts = Readonly<Record<string, string>>;

/** Reads the counts of minutes or hours that began at these times. @throws Error when Redis does not answer. */
export async function readCounts(
  redis: RedisClient,
  deployment: Pick<DeploymentIdentity, "id">,
  span: keyof typeof SPANS,
  times: readonly Date[],
): Promise<Counts[]> {
  const asked = redis.pipeline();
  for (const at of times) asked.hgetall(keyOf(deployment, span, at.getTime()));
  return ((await asked.exec()) ?? []).map(([error, found]) => {
    if (error !== null) throw error;
    return found as Counts;
  });
}

/** The starts of the last minutes or hours, oldest first, including the present one. */
export function timesUntil(now: Date, span: keyof typeof SPANS, count: number): Date[] {
  const { lengthMs } = SPANS[span];
  const last = now.getTime() - (now.getTime() % lengthMs);
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
}

/** Estimates a count of the last sixty seconds from the present minute and the one before. */
export function inLastMinute(counts: readonly Counts[], now: Date, count: (counts: Counts) => number): number {
  const { lengthMs } = SPANS.minute;
  const before = 1 - (now.getTime() % lengthMs) / lengthMs;
  return Math.round(count(counts.at(-1) ?? {}) + before * count(counts.at(-2) ?? {}));
}

/** The refusals of an organization, or of all. */
export const refusalsIn = (counts: Counts, organizationId: string | null) =>
  Number(counts[organizationId === null ? "refusals" : `refusals ${organizationId}`] ?? 0);

/** The redeems of all organizations that ended without an answer. */
export const unansweredIn = (counts: Counts) => Number(counts.unanswered ?? 0);
/** The redeems of all organizations that were answered. */
export const answeredIn = (counts: Counts) => sumOf(bucketsOf([counts], "latency ")) - unansweredIn(counts);

export const latencyIn = (counts: readonly Counts[]): Percentiles => percentilesOf(bucketsOf(counts, "latency "));

/** The times of a queue's jobs: their waits for a worker, and the worker's times. */
export type JobTimes = Record<"waitedMs" | "workedMs", Percentiles>;

export function jobTimesIn(counts: readonly Counts[], queue: string): JobTimes {
  return {
    waitedMs: percentilesOf(bucketsOf(counts, `${queue} waited `)),
    workedMs: percentilesOf(bucketsOf(counts, `${queue} worked `)),
  };
}

/** The jobs of a queue that ended. */
export const jobsIn = (counts: Counts, queue: string) => sumOf(bucketsOf([counts], `${queue} worked `));

const sumOf = (buckets: readonly BucketCount[]) => buckets.reduce((sum, [, count]) => sum + count, 0);

function bucketsOf(counts: readonly Counts[], prefix: string): BucketCount[] {
  return counts
    .flatMap((fields) => Object.entries(fields))
    .flatMap(([field, count]) =>
      field.startsWith(prefix) ? [[Number(field.slice(prefix.length)), Number(count)] as const] : [],
    );
}
