import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { freePort } from "../../src/local/servers.ts";
import { openLog } from "../../src/log.ts";
import { type Answer, AwaitedQueue } from "../../src/queues/awaited-queue.ts";
import { PREFIX, type QueueDefinition } from "../../src/queues/catalog.ts";
import { openFailFast } from "../../src/queues/connections.ts";
import { openQueue } from "../../src/queues/open-queue.ts";
import { ReplyInbox } from "../../src/queues/replies.ts";
import { type RunningWorker, startWorker } from "../../src/queues/worker.ts";
import { makeGate } from "../support/gate.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { openTcpProxy, type TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

interface Sum {
  a: number;
  b: number;
}

const sumQueue: QueueDefinition<Sum> = {
  name: "sum",
  data: z.object({ a: z.number(), b: z.number() }),
  dataMaxBytes: 64,
  waitingMax: 5_000,
  takesBack: true,
  keep: { age: 60, count: 5_000 },
  keepFailed: { age: 60, count: 5_000 },
  shown: { data: [], reply: [] },
};
const sumReply = z.object({ sum: z.number() });
type SumReply = z.infer<typeof sumReply>;

const log = openLog("silent", "test");
/** Longer than a test may take: an answer that needed it never comes. */
const FOR_EVER_MS = 600_000;

let servers: TestServers;
/** The wire of the asking process's commands; its replies and the workers have wires of their own. */
let wire: TcpProxy;
let redis: Redis;
let replyWire: TcpProxy;
let inbox: ReplyInbox;
let asking: AwaitedQueue<Sum, SumReply>;
/** The same queue, to look at and to add to from outside. */
let queue: Queue;
let outside: Redis;
let workers: RunningWorker[];
let jobs: number;
const unhandled: unknown[] = [];
const noteUnhandled = (reason: unknown) => unhandled.push(reason);

beforeAll(async () => {
  process.on("unhandledRejection", noteUnhandled);
  servers = await openTestServers();
  outside = openFailFast(servers.redisUrl, "outside", log);
  await untilReady(outside);
  queue = openQueue(sumQueue, outside, log);
});

beforeEach(async () => {
  await servers.redis.flushdb();
  workers = [];
  jobs = 0;
  wire = await openTcpProxy(servers.redisUrl);
  redis = openFailFast(wire.url, "asking", log);
  await untilReady(redis);
  replyWire = await openTcpProxy(servers.redisUrl);
  inbox = new ReplyInbox(replyWire.url, log);
  asking = new AwaitedQueue(sumQueue, sumReply, redis, inbox, log);
  await until(() => asking.isOpen);
});

afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()));
  await asking.close();
  await inbox.close();
  redis.disconnect();
  await Promise.all([wire.close(), replyWire.close()]);
  expect(unhandled).toEqual([]);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await queue.close();
  outside.disconnect();
  await servers.close();
  process.off("unhandledRejection", noteUnhandled);
});

async function untilReady(connection: Redis): Promise<void> {
  await until(() => connection.status === "ready");
}

function newJobId(): string {
  jobs += 1;
  return `job-${jobs}-${crypto.randomUUID()}`;
}

function work(process: (jobId: string, data: Sum) => Promise<unknown>): void {
  workers.push(startWorker(sumQueue, { redisUrl: servers.redisUrl, concurrency: 16, log }, process));
}

const add = async (_jobId: string, { a, b }: Sum) => ({ sum: a + b });

/** Where a job is in Redis: everything that must be gone when it was taken back. */
async function tracesOf(jobId: string): Promise<string[]> {
  const lists = ["wait", "active", "paused"];
  const found = await Promise.all(lists.map((list) => servers.redis.lpos(`${PREFIX}:sum:${list}`, jobId)));
  const keys = await servers.redis.keys(`*${jobId}*`);
  return [...lists.filter((_, n) => found[n] !== null), ...keys];
}

describe("a reply", () => {
  it("reaches the caller that asked for it", async () => {
    work(add);
    expect(await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 3 },
    });
  });

  it("reaches each of 200 callers that wait at once, and no other", async () => {
    work(add);
    const callers = Array.from({ length: 200 }, (_, n) => n);
    const answers = await Promise.all(callers.map((n) => asking.ask(newJobId(), { a: n, b: 1_000 }, FOR_EVER_MS)));
    expect(answers).toMatchObject(callers.map((n) => ({ kind: "reply", reply: { sum: n + 1_000 } })));
  });

  it("reaches only the process that asked when two ask", async () => {
    work(add);
    const letterbox = new ReplyInbox(servers.redisUrl, log);
    const neighbour = new AwaitedQueue(sumQueue, sumReply, outside, letterbox, log);
    await until(() => neighbour.isOpen);
    const [own, foreign] = await Promise.all([
      asking.ask(newJobId(), { a: 1, b: 1 }, FOR_EVER_MS),
      neighbour.ask(newJobId(), { a: 2, b: 2 }, FOR_EVER_MS),
    ]);
    await neighbour.close();
    await letterbox.close();
    expect([own, foreign]).toMatchObject([
      { kind: "reply", reply: { sum: 2 } },
      { kind: "reply", reply: { sum: 4 } },
    ]);
  });

  it("counts even though nobody acknowledged the job", async () => {
    work(add);
    await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    wire.muffle();
    expect(await asking.ask(newJobId(), { a: 2, b: 3 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 5 },
    });
  });

  it("says how long the job waited for its worker and how long that took", async () => {
    const asked = asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    await until(async () => (await queue.getWaitingCount()) === 1);
    const waited = new Promise((resolve) => setTimeout(resolve, 50));
    await waited;
    work(async (id, data) => {
      await new Promise((resolve) => setTimeout(resolve, 60));
      return add(id, data);
    });
    const answer = await asked;
    if (answer.kind !== "reply") throw new Error("no reply came");
    // Timers may be a millisecond early.
    expect(answer.queuedMs).toBeGreaterThanOrEqual(49);
    expect(answer.workedMs).toBeGreaterThanOrEqual(59);
  });

  it("is one message with all others that their worker finishes at the same time", async () => {
    const gate = makeGate();
    let begun = 0;
    work(async (id, data) => {
      begun += 1;
      await gate.pass();
      return add(id, data);
    });
    const listener = openFailFast(servers.redisUrl, "listener", log);
    await untilReady(listener);
    const messages: string[] = [];
    listener.on("message", (_channel, message) => messages.push(message));
    await listener.subscribe(inbox.channel);
    const asked = Array.from({ length: 10 }, (_, n) => asking.ask(newJobId(), { a: n, b: 1 }, FOR_EVER_MS));
    await until(() => begun === 10);
    gate.open();
    await Promise.all(asked);
    await until(() => messages.length > 0);
    expect(messages.map((message) => JSON.parse(message).length)).toEqual([10]);
    listener.disconnect();
  });

  it.each(["reply", "failure"])("that was lost on its way is learnt from the queue: a %s", async (ending) => {
    const gate = makeGate();
    work(async (id, data) => {
      await gate.pass();
      if (ending === "failure") throw new Error("out of paper");
      return add(id, data);
    });
    const asked = asking.ask(newJobId(), { a: 5, b: 6 }, FOR_EVER_MS);
    await gate.reached;
    replyWire.cut();
    await until(async () => (await servers.redis.pubsub("NUMSUB", inbox.channel))[1] === 0);
    gate.open();
    expect(await asked).toMatchObject(
      ending === "reply"
        ? { kind: "reply", reply: { sum: 11 } }
        : { kind: "unknown", cause: { message: "out of paper" } },
    );
  });

  it("arrives by message again once the connection is back", async () => {
    work(add);
    replyWire.cut();
    await until(async () => (await servers.redis.pubsub("NUMSUB", inbox.channel))[1] === 0);
    replyWire.mend();
    await until(async () => (await servers.redis.pubsub("NUMSUB", inbox.channel))[1] === 1);
    expect(await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ reply: { sum: 3 } });
  });

  it("that nobody can read does not harm the next", async () => {
    work(add);
    for (const nonsense of ["{", "[]", '[{"jobId":1}]', "null"]) await servers.redis.publish(inbox.channel, nonsense);
    expect(await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ reply: { sum: 3 } });
  });

  it("that is not what the queue answers is unknown", async () => {
    work(async () => ({ total: 3 }));
    const answer = await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    expect(answer).toEqual({ kind: "unknown", cause: expect.any(z.ZodError) });
  });

  it("that is nothing at all is unknown", async () => {
    work(async () => undefined);
    expect(await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ kind: "unknown" });
  });

  it("of a failed job is unknown, with the reason as its cause", async () => {
    work(async () => {
      throw new Error("out of paper");
    });
    const answer = await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    expect(answer).toMatchObject({ kind: "unknown", cause: { message: "out of paper" } });
  });
});

describe("a caller that waited long enough", () => {
  it("takes a job that nobody started back: it is gone and never runs", async () => {
    const jobId = newJobId();
    expect(await asking.ask(jobId, { a: 1, b: 2 }, 100)).toEqual({ kind: "withdrawn" });
    expect(await tracesOf(jobId)).toEqual([]);
    const ran: string[] = [];
    work(async (id, data) => {
      ran.push(id);
      return add(id, data);
    });
    const later = newJobId();
    await asking.ask(later, { a: 1, b: 1 }, FOR_EVER_MS);
    expect(ran).toEqual([later]);
  });

  it("takes back its own job alone", async () => {
    const others = [newJobId(), newJobId()];
    await queue.add(sumQueue.name, { a: 1, b: 1 }, { jobId: others[0] as string });
    const asked = asking.ask(newJobId(), { a: 2, b: 2 }, 200);
    await until(async () => (await queue.getWaitingCount()) === 2);
    await queue.add(sumQueue.name, { a: 3, b: 3 }, { jobId: others[1] as string });
    expect(await asked).toEqual({ kind: "withdrawn" });
    const ran: string[] = [];
    work(async (id, data) => {
      ran.push(id);
      return add(id, data);
    });
    await until(() => ran.length === 2);
    expect(ran).toEqual(others);
  });

  it("is told unknown about a job that is running, and its late reply is ignored", async () => {
    const gate = makeGate();
    work(async (id, data) => {
      await gate.pass();
      return add(id, data);
    });
    const jobId = newJobId();
    const answer = await asking.ask(jobId, { a: 1, b: 2 }, 200);
    expect(answer).toMatchObject({ kind: "unknown", cause: { message: "no reply within 200 ms" } });
    expect(await tracesOf(jobId)).toContain("active");
    gate.open();
    await until(async () => (await queue.getJobState(jobId)) === "completed");
    expect(await asking.ask(newJobId(), { a: 4, b: 4 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 8 },
    });
  });

  it("is told unknown about a job that was started once and put back, which stays", async () => {
    const jobId = newJobId();
    const asked = asking.ask(jobId, { a: 1, b: 2 }, 300);
    await until(async () => (await queue.getWaitingCount()) === 1);
    await servers.redis.hset(`${PREFIX}:sum:${jobId}`, "ats", 1);
    expect(await asked).toMatchObject({ kind: "unknown" });
    expect(await tracesOf(jobId)).toContain("wait");
  });

  it("is told unknown when the job cannot be taken back because Redis is away", async () => {
    const jobId = newJobId();
    const asked = asking.ask(jobId, { a: 1, b: 2 }, 300);
    await until(async () => (await queue.getWaitingCount()) === 1);
    wire.cut();
    expect(await asked).toMatchObject({ kind: "unknown" });
    expect(await tracesOf(jobId)).toContain("wait");
  });

  it("is never told both that its job was taken back and that it ran", async () => {
    const ran = new Set<string>();
    work(async (id, data) => {
      ran.add(id);
      return add(id, data);
    });
    const answers = new Map<string, Answer<SumReply>>();
    for (let wave = 0; wave < 10; wave++) {
      await Promise.all(
        Array.from({ length: 40 }, async (_, n) => {
          const jobId = newJobId();
          answers.set(jobId, await asking.ask(jobId, { a: n, b: wave }, n / 4));
        }),
      );
    }
    await until(async () => (await queue.getWaitingCount()) + (await queue.getActiveCount()) === 0);
    for (const [jobId, answer] of answers) {
      if (answer.kind === "withdrawn") expect(ran.has(jobId)).toBe(false);
      if (answer.kind === "reply") expect(ran.has(jobId)).toBe(true);
    }
  });
});

describe("while Redis cannot be reached", () => {
  it("a caller is told unknown at once when Redis was never there", async () => {
    const port = await freePort();
    const early = openFailFast(`redis://127.0.0.1:${port}`, "early", log);
    const lonely = new AwaitedQueue(sumQueue, sumReply, early, inbox, log);
    expect(await lonely.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ kind: "unknown" });
    await expect(lonely.add(newJobId(), { a: 1, b: 2 })).rejects.toThrow("Redis has not been reached yet");
    await lonely.close();
    early.disconnect();
  });

  it("a process that started without Redis opens its queue when Redis comes", async () => {
    const late = await openTcpProxy(servers.redisUrl);
    late.cut();
    const connection = openFailFast(late.url, "late", log);
    const patient = new AwaitedQueue(sumQueue, sumReply, connection, inbox, log);
    expect(await patient.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ kind: "unknown" });
    work(add);
    late.mend();
    await until(() => patient.isOpen);
    expect(await patient.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 3 },
    });
    await patient.close();
    connection.disconnect();
    await late.close();
  });

  it("a process whose queue could not be opened at first opens it when Redis answers again", async () => {
    const slow = await openTcpProxy(servers.redisUrl);
    const connection = openFailFast(slow.url, "slow", log);
    await untilReady(connection);
    slow.muffle();
    const patient = new AwaitedQueue(sumQueue, sumReply, connection, inbox, log);
    // Longer than a command waits for its answer.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(patient.isOpen).toBe(false);
    work(add);
    slow.mend();
    await until(() => patient.isOpen);
    expect(await patient.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 3 },
    });
    await patient.close();
    connection.disconnect();
    await slow.close();
  });

  it("a caller is told unknown at once and adds nothing, and the next one gets its reply when Redis is back", async () => {
    work(add);
    await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    wire.cut();
    await until(() => redis.status !== "ready");
    const jobId = newJobId();
    expect(await asking.ask(jobId, { a: 1, b: 2 }, FOR_EVER_MS)).toMatchObject({ kind: "unknown" });
    wire.mend();
    await untilReady(redis);
    expect(await asking.ask(newJobId(), { a: 3, b: 3 }, FOR_EVER_MS)).toMatchObject({
      kind: "reply",
      reply: { sum: 6 },
    });
    expect(await tracesOf(jobId)).toEqual([]);
  });

  it("a caller is told unknown when Redis takes the job and does not answer", async () => {
    wire.jam();
    const answer = await asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS);
    expect(answer).toMatchObject({ kind: "unknown", cause: { message: expect.stringMatching(/timed out/i) } });
  });

  it("a caller still gets its reply when the commands' connection is lost behind its job", async () => {
    const gate = makeGate();
    work(async (id, data) => {
      await gate.pass();
      return add(id, data);
    });
    const asked = asking.ask(newJobId(), { a: 5, b: 6 }, FOR_EVER_MS);
    await gate.reached;
    wire.cut();
    gate.open();
    expect(await asked).toMatchObject({ kind: "reply", reply: { sum: 11 } });
  });
});

describe("a job that Redis is not given", () => {
  it("because its data are too large is unknown at once", async () => {
    const data = { a: 1, b: 2, padding: "x".repeat(500) };
    const jobId = newJobId();
    expect(await asking.ask(jobId, data, FOR_EVER_MS)).toMatchObject({ kind: "unknown" });
    expect(await tracesOf(jobId)).toEqual([]);
  });
});

describe("the callers of one process", () => {
  it("may be 2000 and not one more, and all of them hear when the process closes", async () => {
    const asked: Promise<Answer<SumReply>>[] = [];
    const ask = () => asked.push(asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS));
    // A few at a time, or the last of them waits longer for Redis than a command may.
    while (asked.length < 1_900) {
      while (asked.length % 100 < 99) ask();
      ask();
      await until(async () => (await queue.getWaitingCount()) === asked.length);
    }
    while (asked.length < 1_999) ask();
    expect(asking.hasRoom).toBe(true);
    ask();
    expect(asking.hasRoom).toBe(false);
    await until(async () => (await queue.getWaitingCount()) === 2_000);
    await asking.close();
    const answers = await Promise.all(asked);
    expect(answers).toEqual(answers.map(() => ({ kind: "unknown", cause: new Error("the process is closing") })));
    expect(asking.hasRoom).toBe(true);
  });

  it("make room when they have their answer", async () => {
    const asked = Array.from({ length: 2_000 }, () => asking.ask(newJobId(), { a: 1, b: 2 }, FOR_EVER_MS));
    expect(asking.hasRoom).toBe(false);
    work(add);
    await Promise.race(asked);
    expect(asking.hasRoom).toBe(true);
    await Promise.all(asked);
  });

  it("has no room behind more waiting jobs than the queue may hold, and has room again once they are worked off", async () => {
    const key = `${PREFIX}:${sumQueue.name}:wait`;
    expect(asking.hasRoom).toBe(true);
    await servers.redis.rpush(key, ...Array.from({ length: sumQueue.waitingMax }, (_, n) => `job-${n}`));
    await until(() => !asking.hasRoom);
    await servers.redis.lpop(key);
    await until(() => asking.hasRoom);
  });
});
