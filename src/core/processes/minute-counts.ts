import type { Logger } from "pino";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { ReportedAs } from "../../platform/http/endpoint.ts";
import type { Closable } from "../../platform/lifetime.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { type BucketCount, bucketOf, type Percentiles, percentilesOf } from "./latency-buckets.ts";

/** Interval at which a process sends its counts to Redis. Milliseconds. */
const SEND_EVERY_MS = 5_000;
/** The prefix of the Redis keys of processes' reports. The braces keep these keys in one slot of a Redis Cluster. */
export const reportPrefix = ({ id }: { readonly id: string }) => `{pva:${id}:overview}`;

/** The lengths of a minute and an hour, and how long their counts are kept. Milliseconds. */
const SPANS = {
  minute: { lengthMs: 60_000, keptMs: 2 * 3_600_000 },
  hour: { lengthMs: 3_600_000, keptMs: 50 * 3_600_000 },
};

const keyOf = (deployment: Pick<DeploymentIdentity, "id">, span: string, atMs: number) =>
  `${reportPrefix(deployment)}:${span}:${atMs}`;

/** Maximum number of busiest keys, and of keys with the most calls over a limit, whose counts a process sends. */
const KEYS_MAX = 20;

/** The facts of a request that are known when its response has ended. */
interface Observed {
  reportedAs?: ReportedAs;
  organizationId?: string;
  keyId?: string;
}

/** The number of calls of a key, including those over a limit (429). */
export interface KeyCalls {
  organizationId: string;
  keyId: string;
  calls: number;
  limited: number;
}

interface Deps {
  redis: RedisClient;
  deployment: DatabaseFence;
  log: Logger;
}

/**
 * Counts refusals, latencies of redeems and times of jobs, for the plots that operators see. Each process adds its
 * counts to sums per minute and per hour in Redis, which all processes share. The sums are approximate, because counts
 * that Redis does not accept are lost.
 */
export class MinuteCounts implements Closable {
  readonly #ctx: Deps;
  readonly #timer: NodeJS.Timeout;
  #counts = new Map<string, number>();
  #keys = new Map<string, KeyCalls>();

  constructor(ctx: Deps) {
    this.#ctx = ctx;
    this.#timer = setInterval(() => void this.send(), SEND_EVERY_MS).unref();
  }

  /** Counts a response. */
  observe({ reportedAs, organizationId, keyId }: Observed, status: number, durationMs: number): void {
    if (organizationId !== undefined && keyId !== undefined) this.#countKey({ organizationId, keyId }, status);
    if (reportedAs === undefined || reportedAs === "probe") return;
    if (reportedAs === "redemption" && status !== 499) {
      this.#add(`latency ${bucketOf(durationMs)}`);
      if (status >= 500) {
        this.#add("unanswered");
        if (organizationId !== undefined) this.#add(`unanswered ${organizationId}`);
      }
    }
    if (status < 400 || status > 498) return;
    this.#add("refusals");
    if (organizationId !== undefined) this.#add(`refusals ${organizationId}`);
  }

  /**
   * Counts a job that has ended.
   * @param waitedMs null for a job that was tried before, because the wait is then unknown.
   */
  observeJob(queue: string, waitedMs: number | null, workedMs: number): void {
    if (waitedMs !== null) this.#add(`${queue} waited ${bucketOf(waitedMs)}`);
    this.#add(`${queue} worked ${bucketOf(workedMs)}`);
  }

  /**
   * Adds the counts to those in Redis, and records that this process has sent counts. So a time with no counts is
   * distinguished from a time of which nothing is known. Never rejects.
   */
  async send(): Promise<void> {
    const { redis, deployment, log } = this.#ctx;
    for (const [field, count] of this.#busiestKeys()) this.#counts.set(field, count);
    const counted = this.#counts.set(SENT, 1);
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

  #countKey(key: Pick<KeyCalls, "organizationId" | "keyId">, status: number): void {
    const counted = this.#keys.get(key.keyId) ?? { ...key, calls: 0, limited: 0 };
    counted.calls += 1;
    if (status === 429) counted.limited += 1;
    this.#keys.set(key.keyId, counted);
  }

  /** The counts of the busiest keys. They are limited, because each key adds a field to the sums of every minute. */
  #busiestKeys(): (readonly [field: string, count: number])[] {
    const keys = [...this.#keys.values()];
    this.#keys = new Map();
    return KEY_COUNTS.flatMap((what) =>
      keys
        .filter((key) => key[what] > 0)
        .toSorted((a, b) => b[what] - a[what])
        .slice(0, KEYS_MAX)
        .map(({ organizationId, keyId, ...key }) => [`key ${what} ${organizationId} ${keyId}`, key[what]] as const),
    );
  }

  #add(field: string): void {
    this.#counts.set(field, (this.#counts.get(field) ?? 0) + 1);
  }
}

const KEY_COUNTS = ["calls", "limited"] as const;
/** The field that shows that any process has sent counts. */
const SENT = "sent";

/** The counts of a minute or an hour, by field. Without fields, nothing is known about that time. */
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

/** The starts of the last minutes or hours, oldest first, including the current one. */
export function timesUntil(now: Date, span: keyof typeof SPANS, count: number): Date[] {
  const { lengthMs } = SPANS[span];
  const last = now.getTime() - (now.getTime() % lengthMs);
  return Array.from({ length: count }, (_, index) => new Date(last - (count - 1 - index) * lengthMs));
}

/** Estimates a count of the last sixty seconds from the current minute and the previous one. */
export function inLastMinute(counts: readonly Counts[], now: Date, count: (counts: Counts) => number): number {
  const { lengthMs } = SPANS.minute;
  const before = 1 - (now.getTime() % lengthMs) / lengthMs;
  return Math.round(count(counts.at(-1) ?? {}) + before * count(counts.at(-2) ?? {}));
}

/** The refusals of one organization, or of all if null. */
export const refusalsIn = (counts: Counts, organizationId: string | null) =>
  Number(counts[organizationId === null ? "refusals" : `refusals ${organizationId}`] ?? 0);

/** The redeems without an answer, of one organization or of all if null. */
export const unansweredIn = (counts: Counts, organizationId: string | null = null) =>
  Number(counts[organizationId === null ? "unanswered" : `unanswered ${organizationId}`] ?? 0);
/** Whether any process has sent its counts of this time. */
export const isKnown = (counts: Counts) => SENT in counts;

/** The calls of the busiest keys in the last sixty seconds. Keys with calls over a limit come first. */
export function busiestKeysIn(counts: readonly Counts[], now: Date): KeyCalls[] {
  const fields = new Set(counts.slice(-2).flatMap((minute) => Object.keys(minute)));
  const names = new Set([...fields].flatMap((field) => /^key \w+ (\S+ \S+)$/.exec(field)?.[1] ?? []));
  const keys = [...names].map((name): KeyCalls => {
    const [organizationId = "", keyId = ""] = name.split(" ");
    const [calls = 0, limited = 0] = KEY_COUNTS.map((what) =>
      inLastMinute(counts, now, (minute) => Number(minute[`key ${what} ${name}`] ?? 0)),
    );
    return { organizationId, keyId, calls: Math.max(calls, limited), limited };
  });
  return keys.filter(({ calls }) => calls > 0).toSorted((a, b) => b.limited - a.limited || b.calls - a.calls);
}

/** Minimum number of calls over a limit in a minute for a key to count as limited: one a second. */
const LIMITED_MIN = 60;

/** Keys with at least {@link LIMITED_MIN} calls over a limit in the last full minute, and one in an adjacent minute. */
export function limitedKeysIn(counts: readonly Counts[]): Omit<KeyCalls, "calls">[] {
  const [before = {}, last = {}, present = {}] = counts.slice(-3);
  return Object.entries(last).flatMap(([field, count]) => {
    const [, organizationId, keyId] = /^key limited (\S+) (\S+)$/.exec(field) ?? [];
    if (organizationId === undefined || keyId === undefined || Number(count) < LIMITED_MIN) return [];
    return field in before || field in present ? [{ organizationId, keyId, limited: Number(count) }] : [];
  });
}
/** The number of answered redeems of all organizations. */
export const answeredIn = (counts: Counts) => sumOf(bucketsOf([counts], "latency ")) - unansweredIn(counts);

export const latencyIn = (counts: readonly Counts[]): Percentiles => percentilesOf(bucketsOf(counts, "latency "));

/** The times of a queue's jobs: how long they waited for a worker, and how long the worker took. */
export type JobTimes = Record<"waitedMs" | "workedMs", Percentiles>;

export function jobTimesIn(counts: readonly Counts[], queue: string): JobTimes {
  return {
    waitedMs: percentilesOf(bucketsOf(counts, `${queue} waited `)),
    workedMs: percentilesOf(bucketsOf(counts, `${queue} worked `)),
  };
}

/** The number of ended jobs of a queue. */
export const jobsIn = (counts: Counts, queue: string) => sumOf(bucketsOf([counts], `${queue} worked `));

const sumOf = (buckets: readonly BucketCount[]) => buckets.reduce((sum, [, count]) => sum + count, 0);

function bucketsOf(counts: readonly Counts[], prefix: string): BucketCount[] {
  return counts
    .flatMap((fields) => Object.entries(fields))
    .flatMap(([field, count]) =>
      field.startsWith(prefix) ? [[Number(field.slice(prefix.length)), Number(count)] as const] : [],
    );
}
