import type { ChainableCommander } from "ioredis";
import { QUEUE_NAMES, type QueueName } from "../../platform/queues/queue-settings.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { type BucketCount, bucketOf, type Percentiles, percentilesOf } from "./latency-buckets.ts";

const MINUTE_MS = 60_000;
/** How many of the last minutes are read, including the present one. */
const MINUTES = 5;
/** How long the counts of a minute are kept. Milliseconds. */
const KEPT_MS = 10 * MINUTE_MS;

/** The measured times of a job: its wait for a worker, and the worker's time. */
type Measure = "waited" | "worked";

/** The times of a queue's jobs, as workers report them. */
export type JobTimes = Record<`${Measure}Ms`, Percentiles>;

/** Counts a worker process's jobs in memory, for its reports. */
export function openJobCounts() {
  let counts = new Map<string, number>();
  /** When jobs ended, in steps of a second on the monotonic clock, by queue. */
  const ended = new Map<string, Map<number, number>>();
  const add = (queue: string, measure: Measure, ms: number) => {
    const field = `${queue} ${measure} ${bucketOf(ms)}`;
    counts.set(field, (counts.get(field) ?? 0) + 1);
  };
  return {
    /** @param waitedMs null if the wait is not known, because the job was tried before. */
    observe(queue: string, waitedMs: number | null, workedMs: number): void {
      if (waitedMs !== null) add(queue, "waited", waitedMs);
      add(queue, "worked", workedMs);
      const second = Math.floor(performance.now() / 1_000);
      const seconds = ended.get(queue) ?? new Map<number, number>();
      ended.set(queue, seconds.set(second, (seconds.get(second) ?? 0) + 1));
    },
    /** The jobs of each queue that ended in the last minute. */
    ofLastMinute(): Record<string, number> {
      const since = performance.now() / 1_000 - 60;
      return Object.fromEntries(
        Array.from(ended, ([queue, seconds]) => {
          for (const second of seconds.keys()) if (second < since) seconds.delete(second);
          return [queue, [...seconds.values()].reduce((sum, count) => sum + count, 0)];
        }),
      );
    },
    /** Adds what was counted since the last call to the counts of this minute. */
    send(sent: ChainableCommander, prefix: string, nowMs: number): void {
      const key = minuteKey(prefix, nowMs);
      for (const [field, count] of counts) sent.hincrby(key, field, count);
      if (counts.size > 0) sent.pexpire(key, KEPT_MS);
      counts = new Map();
    },
  };
}

const minuteKey = (prefix: string, atMs: number) => `${prefix}:jobs:${atMs - (atMs % MINUTE_MS)}`;

/** The times of each queue's jobs in the last five minutes. @throws Error when Redis does not answer. */
export async function readJobTimes(
  redis: RedisClient,
  prefix: string,
  nowMs: number,
): Promise<Record<QueueName, JobTimes>> {
  const asked = redis.pipeline();
  for (let minute = 0; minute < MINUTES; minute += 1) asked.hgetall(minuteKey(prefix, nowMs - minute * MINUTE_MS));
  const found = ((await asked.exec()) ?? []).flatMap(([, counts]) => Object.entries(Object(counts)));
  const bucketsOf = (queue: string, measure: Measure): BucketCount[] => {
    const start = `${queue} ${measure} `;
    return found.flatMap(([field, count]) =>
      field.startsWith(start) ? [[Number(field.slice(start.length)), Number(count)] as const] : [],
    );
  };
  const timesOf = (queue: string): JobTimes => ({
    waitedMs: percentilesOf(bucketsOf(queue, "waited")),
    workedMs: percentilesOf(bucketsOf(queue, "worked")),
  });
  return Object.fromEntries(QUEUE_NAMES.map((queue) => [queue, timesOf(queue)])) as Record<QueueName, JobTimes>;
}
