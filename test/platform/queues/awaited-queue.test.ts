import { execFileSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { z } from "zod";
import { openLogger } from "../../../src/platform/logger.ts";
import { AwaitedQueue, type AwaitedResources, type WaitResult } from "../../../src/platform/queues/awaited-queue.ts";
import { openQueue } from "../../../src/platform/queues/open-queue.ts";
import { ReplyInbox } from "../../../src/platform/queues/reply-inbox.ts";
import { findShard } from "../../../src/platform/queues/shards.ts";
import { type RunningWorker, startWorker } from "../../../src/platform/queues/worker.ts";
import { openFailFast, type RedisClient } from "../../../src/platform/redis/connections.ts";
import { makeGate } from "../../support/gate.ts";
import { assertInvariants } from "../../support/invariants.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { openTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";
import { until, untilStarted } from "../../support/until.ts";
import { deployment, SHARD, type Sum, type SumReply, sumQueue } from "./sum-queue.ts";

const log = openLogger("silent", "test");
/** The number of jobs that a worker runs at once. */
const CONCURRENCY = 16;
/** Longer than any test. Milliseconds. */
const NO_TIMEOUT_MS = 600_000;

let servers: TestServers;
/** The proxy for the calling process's commands. Replies use a second proxy, and the workers use none. */
let proxy: TcpProxy;
let redis: RedisClient;
let replyProxy: TcpProxy;
let inbox: ReplyInbox;
let closing: AbortController;
let awaited: AwaitedQueue<Sum, SumReply>;
/** BullMQ's own view of the queue, for direct access. */
let queue: Queue;
let outside: RedisClient;
let workers: RunningWorker[];
let jobs: number;
let foreignJobs = 0;
let foreignReplies = 0;
const unhandled: unknown[] = [];
const PREFIX = SHARD.prefix;

beforeAll(async () => {
  process.on("unhandledRejection", recordUnhandled);
  servers = await openTestServers();
  outside = openFailFast(servers.redisUrl, "outside", log);
  await untilReady(outside);
  queue = openQueue(sumQueue, SHARD, outside, log);
});

beforeEach(async () => {
  await servers.redis.flushdb();
  workers = [];
  jobs = 0;
  proxy = await openTcpProxy(servers.redisUrl);
  replyProxy = await openTcpProxy(servers.redisUrl);
  inbox = new ReplyInbox(replyProxy.url, log);
  // On a busy machine, a command may take longer than usual.
  await openAwaited(10_000);
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await awaited.close();
  await inbox.close();
  redis.disconnect();
  await Promise.all([proxy.close(), replyProxy.close()]);
  expect(unhandled).toEqual([]);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await queue.close();
  outside.disconnect();
  await servers.close();
  process.off("unhandledRejection", recordUnhandled);
});

it("each of 200 callers that wait at once gets the reply to its own job", async () => {
  work(add);
  const callers = Array.from({ length: 200 }, (_, n) => n);
  const answers = await Promise.all(callers.map((n) => call(n, 1_000)));
  expect(answers).toMatchObject(callers.map((n) => isReply(n + 1_000)));
});

it("a reply reaches only the process that added the job", async () => {
  work(add);
  const otherInbox = new ReplyInbox(servers.redisUrl, log);
  const otherQueue = new AwaitedQueue(sumQueue, { ...resourcesOn(outside), inbox: otherInbox });
  await untilStarted(() => otherQueue.hasOpened);
  const [own, foreign] = await Promise.all([
    call(1, 1),
    otherQueue.addAndWait(newJobId(), { a: 2, b: 2 }, NO_TIMEOUT_MS),
  ]);
  await otherQueue.close();
  await otherInbox.close();
  expect([own, foreign]).toMatchObject([isReply(2), isReply(4)]);
});

it("a reply reaches its caller even if Redis did not acknowledge the job", async () => {
  work(add);
  await call(1, 2);
  proxy.muffle();
  expect(await call(2, 3)).toMatchObject(isReply(5));
});

it("a reply reports the job's waiting time and running time", async () => {
  const asked = call(1, 2);
  await untilQueued(1);
  await sleep(50);
  work(async (id, data) => {
    await sleep(60);
    return add(id, data);
  });
  const answer = await asked;
  if (answer.kind !== "reply") throw new Error("no reply came");
  // Timers may fire a millisecond early.
  expect(answer.queuedMs).toBeGreaterThanOrEqual(49);
  expect(answer.workedMs).toBeGreaterThanOrEqual(59);
});

it("one Redis message carries all replies that a worker sends at the same time", async () => {
  const gate = workAtGate();
  const listener = openFailFast(servers.redisUrl, "listener", log);
  await untilReady(listener);
  const messages: string[] = [];
  listener.on("smessage", (_channel: string, message: string) => messages.push(message));
  await listener.ssubscribe(inbox.channel);
  const asked = Array.from({ length: 10 }, (_, n) => call(n, 1));
  await until(() => gate.started === 10);
  gate.open();
  await Promise.all(asked);
  await until(() => messages.length > 0);
  expect(messages.map((message) => JSON.parse(message).length)).toEqual([10]);
  listener.disconnect();
});

it("a job runs again after each of three crashes of its worker, and fails after the fourth crash", async () => {
  const callAfter = async (deaths: number) => {
    const id = newJobId();
    const asked = awaited.addAndWait(id, { a: deaths, b: 0 }, NO_TIMEOUT_MS);
    await untilQueued(1);
    // Brings the job into the state in which the last of these killed workers leaves it.
    const keyOf = (name: string) => `${PREFIX}:sum:${name}`;
    await servers.redis
      .multi()
      .lrem(keyOf("wait"), 1, id)
      .lpush(keyOf("active"), id)
      .sadd(keyOf("stalled"), id)
      .hset(keyOf(id), "stc", deaths - 1)
      .exec();
    return { asked };
  };
  const [three, four] = [await callAfter(3), await callAfter(4)];
  work(add);
  expect(await three.asked).toMatchObject(isReply(3));
  expect(await four.asked).toMatchObject(isUnknown(expect.stringContaining("stalled")));
});

it.each(["reply", "failure"])("a %s whose pub/sub message was lost is read from the queue", async (ending) => {
  const gate = workAtGate(async (id, data) => {
    if (ending === "failure") throw new Error("out of paper");
    return add(id, data);
  });
  const asked = call(5, 6);
  await gate.reached;
  replyProxy.cut();
  await untilListening(0);
  gate.open();
  expect(await asked).toMatchObject(ending === "reply" ? isReply(11) : isUnknown("out of paper"));
});

it("replies arrive again within seconds after a subscriber's connection was lost without being closed", async () => {
  work(add);
  replyProxy.lose();
  const asked = call(1, 2);
  await until(() => replyProxy.accepted() >= 2);
  await untilListening(2);
  // Waits until replies arrive at once. Without replies, each call would wait a second and then read the job's result.
  await until(async () => {
    const startedAt = performance.now();
    expect(await call(3, 4)).toMatchObject(isReply(7));
    return performance.now() - startedAt < 900;
  });
  expect(await asked).toMatchObject(isReply(3));
});

it("a caller gets a late reply although Redis lost the job while a worker ran the job", async () => {
  const gate = workAtGate();
  const jobId = newJobId();
  const asked = awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS);
  await gate.reached;
  await servers.redis.del(`${PREFIX}:sum:${jobId}`);
  // The caller checks the job's result once a second. The first check lets the worker finish.
  const pipeline = redis.pipeline.bind(redis);
  const checks = vi.spyOn(redis, "pipeline").mockImplementation((commands) => {
    gate.open();
    return pipeline(commands);
  });
  expect(await asked).toMatchObject(isReply(3));
  checks.mockRestore();
});

it("a job without a timely acknowledgement is withdrawn when Redis responds again", async () => {
  await reopenAwaited();
  const jobId = newJobId();
  proxy.muffle();
  expect(await awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS)).toMatchObject(
    isUnknown(expect.stringMatching(/timed out/i)),
  );
  await until(async () => (await findJob(jobId)).length === 0);
});

it("a caller soon gets the outcome unknown if Redis has lost its job", async () => {
  const asked = call(1, 2);
  await untilQueued(1);
  await servers.redis.flushdb();
  expect(await asked).toMatchObject(isUnknown("Redis no longer has the job"));
});

/** Data of any job. A queue with several shards would choose the shard by the data. */
const SUM = { a: 1, b: 2 };

it.each([
  ["invalid JSON", { returnvalue: "{" }],
  ["invalid times", { processedOn: "yesterday" }],
])("a caller gets the outcome unknown for a stored reply with %s, and later calls work", async (_title, malformed) => {
  const jobId = newJobId();
  const asked = awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS);
  await untilQueued(1);
  const record = { processedOn: "1", finishedOn: "2", returnvalue: '{"sum":3}', ...malformed };
  await servers.redis.hset(`${PREFIX}:sum:${jobId}`, record);
  expect(await asked).toMatchObject(isUnknown(expect.stringContaining("cannot be read")));
  work(add);
  expect(await call(1, 2)).toMatchObject(isReply(3));
});

it("a malformed message does not affect the next reply, and a reconnect restores replies", async () => {
  work(add);
  for (const nonsense of ["{", "[]", '[{"jobId":1}]', "null"]) await servers.redis.spublish(inbox.channel, nonsense);
  expect(await call(1, 2)).toMatchObject(isReply(3));
  replyProxy.cut();
  await untilListening(0);
  replyProxy.mend();
  await untilListening(1);
  expect(await call(1, 2)).toMatchObject(isReply(3));
});

it.each([
  { total: 3 },
  {},
])("a caller gets the outcome unknown for the reply %j, which does not match the schema", async (reply) => {
  work(async () => reply);
  expect(await call(1, 2)).toEqual({ kind: "unknown", cause: expect.any(z.ZodError) });
});

it("the caller of a failed job gets the outcome unknown, with the failure as its cause", async () => {
  work(() => Promise.reject(new Error("out of paper")));
  expect(await call(1, 2)).toMatchObject(isUnknown("out of paper"));
});

/** A process on a copy of the database that uses the same Redis. */
const copy = { ...deployment, serverId: "test/2" };

it("the caller of a job with unreadable data gets the outcome unknown, and the data as the cause", async () => {
  work(add);
  const asked = awaited.addAndWait(newJobId(), { a: 1 } as Sum, NO_TIMEOUT_MS);
  expect(await asked).toMatchObject(isUnknown("the job's data is not what this queue carries"));
});

it("a worker on a copy of the database refuses and counts jobs of the original database", async () => {
  const before = foreignJobs;
  const ran = workAndRecord(copy);
  expect(await call(1, 2)).toMatchObject(isUnknown("the job is from another deployment or database"));
  expect([ran, foreignJobs - before]).toEqual([[], 1]);
});

it("a worker that has not noticed a restart of Postgres reconnects before it refuses a job", async () => {
  const restarted = { ...deployment, serverId: "before the restart" };
  const before = foreignJobs;
  restarted.reconnect = async () => {
    restarted.serverId = deployment.serverId;
  };
  work(add, restarted);
  expect(await call(1, 2)).toMatchObject(isReply(3));
  expect(foreignJobs).toBe(before);
});

it("callers count and ignore replies of a worker on a copy of the database", async () => {
  const before = foreignReplies;
  const jobId = newJobId();
  const asked = awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS);
  const reply = { jobId, outcome: { reply: { sum: 3, origin: copy.serverId } }, queuedMs: 1, workedMs: 1 };
  await servers.redis.spublish(inbox.channel, JSON.stringify([reply]));
  expect(await asked).toMatchObject(isUnknown("the reply is from another deployment or database"));
  expect(foreignReplies - before).toBe(1);
});

/** Counts the connections that wait in a blocking command on this Redis database, which only this file uses. */
const blocked = async () => {
  const clients = String(await servers.redis.client("LIST")).split("\n");
  const db = ` db=${servers.redis.options.db ?? 0} `;
  return clients.filter((line) => line.includes(db) && / flags=\w*b/.test(line)).length;
};

it("an idle worker soon runs a job whose wake-up went to a killed worker", async () => {
  // The first connection in line gets the marker that should wake a fetcher, and ignores it, like a killed process.
  const killed = servers.redis.duplicate();
  const marker = killed.bzpopmin(`${PREFIX}:sum:marker`, 60);
  await until(async () => (await blocked()) === 1);
  work(add);
  // The connection of the killed process and all eight fetchers of the worker wait.
  await until(async () => (await blocked()) === 1 + 8);
  const addedAt = performance.now();
  expect(await call(1, 2)).toMatchObject(isReply(3));
  // A job must wake a fetcher. Otherwise the job would wait for up to ten seconds.
  expect(performance.now() - addedAt).toBeLessThan(5_000);
  expect(await marker).toMatchObject([`${PREFIX}:sum:marker`, "0", expect.anything()]);
  killed.disconnect();
});

it("a caller whose wait ends before a worker has started its job withdraws the job", async () => {
  const jobId = newJobId();
  expect(await awaited.addAndWait(jobId, SUM, 100)).toMatchObject({ kind: "unknown" });
  await until(async () => (await findJob(jobId)).length === 0);
  const ran = workAndRecord();
  const later = newJobId();
  await awaited.addAndWait(later, { a: 1, b: 1 }, NO_TIMEOUT_MS);
  expect(ran).toEqual([later]);
});

it("a caller whose wait ends withdraws only its own job", async () => {
  const others = [newJobId(), newJobId()];
  await queue.add(sumQueue.name, { a: 1, b: 1, origin: deployment.serverId }, { jobId: others[0] as string });
  const { asked, endWait } = callUntil(newJobId(), { a: 2, b: 2 });
  await untilQueued(2);
  await queue.add(sumQueue.name, { a: 3, b: 3, origin: deployment.serverId }, { jobId: others[1] as string });
  endWait();
  expect(await asked).toMatchObject({ kind: "unknown" });
  const ran = workAndRecord();
  await until(() => ran.length === 2);
  expect(ran).toEqual(others);
});

it("a caller whose wait ends while its job runs gets the outcome unknown, and ignores the late reply", async () => {
  const gate = workAtGate();
  const jobId = newJobId();
  const { asked, endWait } = callUntil(jobId);
  await gate.reached;
  endWait();
  expect(await asked).toMatchObject(isUnknown(`no reply within ${NO_TIMEOUT_MS} ms`));
  expect(await findJob(jobId)).toContain("active");
  gate.open();
  await until(async () => (await queue.getJobState(jobId)) === "completed");
  expect(await call(4, 4)).toMatchObject(isReply(8));
});

it("a caller whose wait ends after its job was put back into the queue gets the outcome unknown", async () => {
  const jobId = newJobId();
  const { asked, endWait } = callUntil(jobId);
  await untilQueued(1);
  await servers.redis.hset(`${PREFIX}:sum:${jobId}`, "ats", 1);
  endWait();
  expect(await asked).toMatchObject({ kind: "unknown" });
  expect(await findJob(jobId)).toContain("wait");
});

it("a caller whose wait ends gets the outcome unknown if Redis cannot withdraw the job", async () => {
  const jobId = newJobId();
  const { asked, endWait } = callUntil(jobId);
  await untilQueued(1);
  proxy.cut();
  endWait();
  expect(await asked).toMatchObject({ kind: "unknown" });
  expect(await findJob(jobId)).toContain("wait");
});

it("a caller gets a reply only from a job that was run", async () => {
  const ran = workAndRecord();
  const answers = new Map<string, WaitResult<SumReply>>();
  for (let wave = 0; wave < 10; wave++) {
    await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const jobId = newJobId();
        answers.set(jobId, await awaited.addAndWait(jobId, { a: n, b: wave }, n / 4));
      }),
    );
  }
  await until(async () => (await queue.getWaitingCount()) + (await queue.getActiveCount()) === 0);
  for (const [jobId, answer] of answers) {
    if (answer.kind === "reply") expect(ran).toContain(jobId);
  }
});

it.each([
  "cannot be reached",
  "does not answer",
])("a process that starts while Redis %s opens its queue when Redis responds again", async (how) => {
  const late = await openTcpProxy(servers.redisUrl);
  if (how === "cannot be reached") late.cut();
  const connection = openFailFast(late.url, "late", log);
  if (how === "does not answer") {
    await untilReady(connection);
    late.muffle();
  }
  const patient = new AwaitedQueue(sumQueue, resourcesOn(connection));
  const ask = () => patient.addAndWait(newJobId(), SUM, NO_TIMEOUT_MS);
  // Waits until the commands that open the queue have failed, because they were sent before this ping.
  await expect(connection.ping()).rejects.toThrow();
  expect(patient.hasOpened).toBe(false);
  if (how === "cannot be reached") expect(await ask()).toMatchObject({ kind: "unknown" });
  work(add);
  late.mend();
  await until(() => patient.hasOpened);
  expect(await ask()).toMatchObject(isReply(3));
  await patient.close();
  connection.disconnect();
  await late.close();
});

it("a call while Redis is unavailable adds no job and returns `unknown` at once; later calls succeed", async () => {
  work(add);
  await call(1, 2);
  proxy.cut();
  await until(() => redis.status !== "ready");
  const jobId = newJobId();
  expect(await awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS)).toMatchObject({ kind: "unknown" });
  proxy.mend();
  await untilReady(redis);
  expect(await call(3, 3)).toMatchObject(isReply(6));
  expect(await findJob(jobId)).toEqual([]);
});

it("a process that was frozen beyond its timeouts first reads the reply that has arrived", async () => {
  const connection = openFailFast(servers.redisUrl, "blocked", log);
  await untilReady(connection);
  const own = new ReplyInbox(servers.redisUrl, log);
  const blocked = new AwaitedQueue(sumQueue, { ...resourcesOn(connection), inbox: own });
  await untilStarted(() => blocked.hasOpened);
  const jobId = newJobId();
  const end = { jobId, outcome: { reply: { sum: 3, origin: deployment.serverId } }, queuedMs: 1, workedMs: 1 };
  const reply = `
    import { Redis } from "ioredis";
    const redis = new Redis(${JSON.stringify(servers.redisUrl)});
    await redis.spublish(${JSON.stringify(own.channel)}, ${JSON.stringify(JSON.stringify([end]))});
    redis.disconnect();`;
  // Begins a new turn of the event loop, because a turn runs timers before it reads.
  await new Promise(setImmediate);
  const asked = blocked.addAndWait(jobId, SUM, 1);
  // Blocks this process until after the call's wait of a millisecond, while the child process sends the reply.
  execFileSync(process.execPath, ["--input-type=module", "--eval", reply]);
  expect(await asked).toMatchObject(isReply(3));
  await blocked.close();
  await own.close();
  connection.disconnect();
});

it("a caller gets the outcome unknown when Redis does not acknowledge the job", async () => {
  await reopenAwaited();
  proxy.jam();
  expect(await call(1, 2)).toMatchObject(isUnknown(expect.stringMatching(/timed out/i)));
});

it("a caller gets its reply if the connection for commands is lost after the job was added", async () => {
  const gate = workAtGate();
  const asked = call(5, 6);
  await gate.reached;
  proxy.cut();
  gate.open();
  expect(await asked).toMatchObject(isReply(11));
});

it("a shard whose running jobs use a quarter of a worker's concurrency gets one more job", async () => {
  const shard = openQueue(sumQueue, findShard(deployment.id, 0, 6), outside, log);
  const data = { ...SUM, origin: deployment.serverId };
  const gate = workAtGate(add, 6, "free");
  try {
    for (let n = 0; n < CONCURRENCY / 4; n++) await shard.add(sumQueue.name, data);
    await until(() => gate.started === CONCURRENCY / 4);
    await shard.add(sumQueue.name, data, { jobId: "free" });
    await until(async () => (await shard.getJobState("free")) === "completed");
  } finally {
    gate.open();
    await shard.close();
  }
});

it("a call with too much data adds no job and returns the outcome `unknown` at once", async () => {
  const data = { a: 1, b: 2, padding: "x".repeat(500) };
  const jobId = newJobId();
  expect(await awaited.addAndWait(jobId, data, NO_TIMEOUT_MS)).toMatchObject({ kind: "unknown" });
  expect(await findJob(jobId)).toEqual([]);
});

it("one owner may have 250 queued jobs and 1 250 waiting callers, which all get an outcome", async () => {
  const asked = Array.from({ length: 1_499 }, () => call(1, 2));
  expect(awaited.askForPlace(SUM)).toBe(true);
  asked.push(call(1, 2));
  expect(awaited.askForPlace(SUM)).toBe(false);
  await untilQueued(250);
  // The first owner has no place left, but another owner has.
  expect(awaited.askForPlace({ a: 1, b: 3 })).toBe(true);
  const other = call(1, 3);
  await untilQueued(251);
  const gate = makeGate();
  let started = 0;
  work(async (id, data) => {
    if (started++ >= 300) await gate.pass();
    return add(id, data);
  });
  expect(await other).toMatchObject(isReply(4));
  await until(() => started > 300);
  expect(awaited.askForPlace(SUM)).toBe(true);
  await awaited.close();
  gate.open();
  const ends = Map.groupBy(await Promise.all(asked), ({ kind }) => kind);
  expect(ends.get("reply")?.length).toBeGreaterThanOrEqual(250);
  const unanswered = ends.get("unknown") ?? [];
  expect(unanswered.length).toBeGreaterThan(1_000);
  expect(new Set(unanswered.map((end) => String("cause" in end && end.cause)))).toEqual(
    new Set(["Error: the process is closing"]),
  );
});

it("a caller whose wait ends before its job is added gets the outcome unknown, and adds no job later", async () => {
  for (let n = 0; n < 250; n++) void call(1, 2);
  const jobId = newJobId();
  expect(await awaited.addAndWait(jobId, SUM, 100)).toMatchObject(isUnknown("no job was added within 100 ms"));
  await untilQueued(250);
  expect(await findJob(jobId)).toEqual([]);
});

it("a queue accepts no call while its list of waiting jobs in Redis is full", async () => {
  const key = `${PREFIX}:${sumQueue.name}:wait`;
  expect(awaited.askForPlace(SUM)).toBe(true);
  await servers.redis.rpush(key, ...Array.from({ length: sumQueue.waitingMax }, (_, n) => `job-${n}`));
  await until(() => !awaited.askForPlace(SUM));
  await servers.redis.lpop(key);
  await until(() => awaited.askForPlace(SUM));
});

it("a queue that was full accepts the next call after a quiet second", async () => {
  const key = `${PREFIX}:${sumQueue.name}:wait`;
  await servers.redis.rpush(key, ...Array.from({ length: sumQueue.waitingMax }, (_, n) => `job-${n}`));
  await until(() => !awaited.askForPlace(SUM));
  await servers.redis.del(key);
  await sleep(1_001);
  expect(awaited.askForPlace(SUM)).toBe(true);
});

it("a closing process gives waiting and later callers the outcome unknown, and withdraws their jobs", async () => {
  const jobId = newJobId();
  const waiting = awaited.addAndWait(jobId, SUM, NO_TIMEOUT_MS);
  await until(async () => (await findJob(jobId)).length > 0);
  closing.abort();
  expect(await waiting).toMatchObject({ kind: "unknown", cause: { message: "the process is closing" } });
  expect(await call(1, 2)).toMatchObject({ kind: "unknown" });
  await until(async () => (await findJob(jobId)).length === 0);
});

async function openAwaited(commandMaxMs?: number): Promise<void> {
  closing = new AbortController();
  redis = openFailFast(proxy.url, "awaited", log, commandMaxMs);
  await untilReady(redis);
  awaited = new AwaitedQueue(sumQueue, resourcesOn(redis));
  await untilStarted(() => awaited.hasOpened);
}

/** Opens the queue again, with the usual time limit for commands. */
async function reopenAwaited(): Promise<void> {
  await awaited.close();
  redis.disconnect();
  await openAwaited();
}

async function untilReady(connection: RedisClient): Promise<void> {
  await untilStarted(() => connection.status === "ready");
}

function newJobId(): string {
  jobs += 1;
  return `job-${jobs}-${crypto.randomUUID()}`;
}

/** Returns the resources that an awaited queue uses in a process. */
function resourcesOn(connection: RedisClient): AwaitedResources {
  const endRuns = closing.signal;
  return { redis: connection, inbox, shards: 1, deployment, log, endRuns, onForeignReply: () => void foreignReplies++ };
}

function work(process: (jobId: string, data: Sum) => Promise<object>, of = deployment, shards = 1): void {
  const options = {
    redisUrl: servers.redisUrl,
    queueShards: [shards],
    workerShards: null,
    deployment: of,
    reconnect: of.reconnect,
    concurrency: CONCURRENCY,
    log,
    onForeignJob: () => void foreignJobs++,
  };
  workers.push(startWorker(sumQueue, options, process as typeof add));
}

const call = (a: number, b: number) => awaited.addAndWait(newJobId(), { a, b }, NO_TIMEOUT_MS);

/** Begins a call whose wait ends when the test says so, on any machine. */
function callUntil(jobId: string, data = SUM) {
  const timers = vi.spyOn(globalThis, "setTimeout");
  const asked = awaited.addAndWait(jobId, data, NO_TIMEOUT_MS);
  const [endWait] = timers.mock.calls.find(([, ms = 0]) => ms > NO_TIMEOUT_MS / 2) ?? [];
  timers.mockRestore();
  if (endWait === undefined) throw new Error("the call set no timer");
  return { asked, endWait };
}

/** Starts a worker whose jobs wait at a gate, except one, and counts the jobs at the gate. */
function workAtGate(process: typeof add = add, shards = 1, free = "") {
  const gate = { ...makeGate(), started: 0 };
  work(
    async (id, data) => {
      if (id !== free) gate.started += 1;
      if (id !== free) await gate.pass();
      return process(id, data);
    },
    deployment,
    shards,
  );
  return gate;
}

/** Starts a worker, and returns the ids of the jobs that it has run. */
function workAndRecord(of = deployment): string[] {
  const ran: string[] = [];
  work(async (id, data) => {
    ran.push(id);
    return add(id, data);
  }, of);
  return ran;
}

const untilQueued = (count: number) => until(async () => (await queue.getWaitingCount()) === count);

/** Resolves when this number of connections listens for replies. */
const untilListening = (count: number) =>
  until(async () => (await servers.redis.pubsub("SHARDNUMSUB", inbox.channel))[1] === count);

/** Finds the lists and keys of a job in Redis. A withdrawn job has none. */
async function findJob(jobId: string): Promise<string[]> {
  const lists = ["wait", "active", "paused"];
  const found = await Promise.all(lists.map((list) => servers.redis.lpos(`${PREFIX}:sum:${list}`, jobId)));
  const keys = await servers.redis.keys(`*${jobId}*`);
  return [...lists.filter((_, n) => found[n] !== null), ...keys];
}

async function add(_jobId: string, { a, b }: Sum) {
  return { sum: a + b };
}

function isReply(sum: number) {
  return { kind: "reply", reply: { sum } };
}

function isUnknown(message: unknown) {
  return { kind: "unknown", cause: { message } };
}

const recordUnhandled = (reason: unknown) => unhandled.push(reason);
