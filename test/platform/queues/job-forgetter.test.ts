import type { Queue } from "bullmq";
import type { Logger } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { openLogger } from "../../../src/platform/logger.ts";
import { JobForgetter } from "../../../src/platform/queues/job-forgetter.ts";
import { openQueue } from "../../../src/platform/queues/open-queue.ts";
import { startWorker } from "../../../src/platform/queues/worker.ts";
import { openFailFast, type RedisClient } from "../../../src/platform/redis/connections.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { until, untilStarted } from "../../support/until.ts";
import { deployment, SHARD, sumQueue } from "./sum-queue.ts";

const log = openLogger("silent", "test");
/** A queue whose jobs may identify a person in every field of their data except `a`. */
const personalQueue = { ...sumQueue, isPersonal: true as const, shown: { data: ["a"], reply: [] } };

let servers: TestServers;
let redis: RedisClient;
let queue: Queue;
/** The commands that a test's forgetter has sent, and the outcomes of the calls. */
let sent: string[][];
let answer: () => Promise<unknown>;
let warned: string[];

beforeAll(async () => {
  servers = await openTestServers();
  redis = openFailFast(servers.redisUrl, "test", log);
  await untilStarted(() => redis.status === "ready");
  queue = openQueue(personalQueue, SHARD, redis, log);
});

beforeEach(async () => {
  await servers.redis.flushdb();
  sent = [];
  warned = [];
  answer = async () => null;
});

afterEach(() => void vi.useRealTimers());

afterAll(async () => {
  await queue.close();
  redis.disconnect();
  await servers.close();
});

it("a job that is unreadable or that BullMQ fails keeps only data that operators may see", async () => {
  const data = { a: 1, note: "for Ada Lovelace", origin: deployment.serverId };
  const unreadable = await queue.add("sum", { ...data, b: "two" });
  const unheard = await queue.add("sum", { ...data, b: 2 });
  // BullMQ sets `defa` on a job whose workers have crashed too often.
  await servers.redis.hset(`${SHARD.prefix}:sum:${unheard.id}`, "defa", "job stalled more than allowable limit");
  const done = await queue.add("sum", { ...data, b: 3 });
  const options = { redisUrl: servers.redisUrl, deployment, queueShards: [1], workerShards: null, concurrency: 4, log };
  const worker = startWorker(
    personalQueue,
    { ...options, reconnect: async () => undefined, onForeignJob: () => undefined },
    async (_id, { a, b }) => ({ sum: a + b }),
  );
  for (const { id = "" } of [unreadable, unheard, done])
    await until(async () => !JSON.stringify((await queue.getJob(id))?.data).includes("Ada"));
  const states = await Promise.all([unreadable, unheard, done].map((job) => job.getState()));
  expect(states).toEqual(["failed", "failed", "completed"]);
  for (const { id = "" } of [unreadable, unheard, done])
    expect((await queue.getJob(id))?.data).toEqual({ a: 1, origin: deployment.serverId });
  await worker.close();
});

it("JobForgetter removes data later if Redis could not change the jobs at first", async () => {
  const forgetter = openForgetter();
  answer = async () => {
    if (sent.length === 1) throw new Error("OOM command not allowed");
  };
  forgetter.add(jobOf("1"));
  await untilRun();
  forgetter.add(jobOf("2"));
  await untilRun();
  await forgetter.close();
  expect(sent).toEqual([["q:1"], ["q:1", "q:2"]]);
  expect(warned).toEqual(["jobs keep their data; it will be tried again"]);
});

it("a closing JobForgetter removes the remaining data after its running call, within a time limit", async () => {
  const held = Promise.withResolvers<void>();
  answer = () => held.promise;
  const forgetter = openForgetter();
  forgetter.add(jobOf("1"));
  await untilRun();
  forgetter.add(jobOf("2"));
  let isClosed = false;
  const closing = forgetter.close().then(() => {
    isClosed = true;
  });
  await new Promise(setImmediate);
  expect(isClosed).toBe(false);
  held.resolve();
  await closing;
  expect(sent).toEqual([["q:1"], ["q:2"]]);
  expect(warned).toEqual([]);

  answer = () => new Promise(() => undefined);
  const unheard = openForgetter();
  unheard.add(jobOf("3"));
  const giving = unheard.close();
  await vi.runAllTimersAsync();
  await giving;
  expect(warned).toEqual(["jobs keep their data, because the process ends"]);
});

it("while Redis is silent, JobForgetter runs one call, and at most 50 000 ended jobs of a shard wait", async () => {
  const held = Promise.withResolvers<void>();
  answer = () => held.promise;
  const forgetter = openForgetter();
  forgetter.add(jobOf("0"));
  await untilRun();
  for (let id = 1; id <= 50_001; id++) forgetter.add(jobOf(String(id)));
  await untilRun();
  expect({ warned, calls: sent.length }).toEqual({
    warned: ["too many jobs wait: the oldest keep their data"],
    calls: 1,
  });
  held.resolve();
  await forgetter.close();
  expect(sent.slice(1).flat()).toEqual(Array.from({ length: 50_000 }, (_, n) => `q:${n + 2}`));
});

const jobOf = (id: string) => ({ id, queueQualifiedName: "q", data: { a: 1, note: "for Ada" } });

/** Waits until a forgetter has run once. */
const untilRun = () => vi.advanceTimersByTimeAsync(1_000);

/** Opens a forgetter, which removes personal data from ended jobs. The test sets Redis's answers and the clock. */
function openForgetter(): JobForgetter {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "setTimeout", "clearTimeout"] });
  const fake = {
    eval(_script: string, count: number, ...rest: string[]) {
      sent.push(rest.slice(0, count));
      return answer();
    },
  };
  const logger = { warn: (_fields: unknown, message: string) => warned.push(message) };
  return new JobForgetter(["a"], fake as unknown as RedisClient, logger as unknown as Logger);
}
