import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { z } from "zod";
import type { QueueDefinition } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";
import type { JobEnd, ReplyInbox } from "./replies.ts";

/** How waiting for a job ended. */
export type Answer<Reply> =
  /** @property queuedMs how long the job waited for a worker, workedMs how long that worker took. Milliseconds. */
  | { kind: "reply"; reply: Reply; queuedMs: number; workedMs: number }
  /** The job never started and was taken back; it never will. */
  | { kind: "withdrawn" }
  /** Whether the job ran, runs or will run is not known. Ask the database. */
  | { kind: "unknown"; cause: unknown };

/** Most callers that may wait in one process; one more is turned away at once. */
const WAITERS_MAX = 2_000;

/** How old the known number of waiting jobs may get while callers come. Milliseconds. */
const DEPTH_EVERY_MS = 250;

/** Pause before another attempt to open the queue. Milliseconds. */
const OPEN_AGAIN_MS = 500;

/** A caller that has waited this long asks Redis how its job ended, and so on each time: its reply may be lost. Milliseconds. */
const RECHECK_MS = 1_000;

interface Waiter<Reply> {
  /** On the monotonic clock. Milliseconds. */
  since: number;
  settle: (answer: Answer<Reply>) => void;
}

/**
 * The producing end of a queue: adds jobs and waits for their replies, which workers send to the process's inbox. A waiter is
 * registered before its job is added, so no reply comes too early. Ids are the caller's and must never repeat.
 *
 * Needs Redis only while it is used: it opens by itself when the connection is ready for the first time.
 */
export class AwaitedQueue<Data, Reply> {
  readonly #definition: QueueDefinition<Data>;
  readonly #reply: z.ZodType<Reply>;
  readonly #redis: Redis;
  readonly #inbox: ReplyInbox;
  readonly #log: Logger;
  /** In the order of their asking. */
  readonly #waiters = new Map<string, Waiter<Reply>>();
  readonly #recheck: NodeJS.Timeout;
  readonly #open = () => void this.#openUntilOpen();
  readonly #countLoss = () => {
    this.#connectionsLost += 1;
  };
  #closed = false;
  /** Connections to Redis that were lost. Behind each may be a server that came back without its last second. */
  #connectionsLost = 0;
  #depth = 0;
  #depthDueAt = 0;
  #queue: Queue | undefined;

  /** @param redis a fail-fast connection; it and the inbox stay the caller's to close. */
  constructor(
    definition: QueueDefinition<Data>,
    reply: z.ZodType<Reply>,
    redis: Redis,
    inbox: ReplyInbox,
    log: Logger,
  ) {
    this.#definition = definition;
    this.#reply = reply;
    this.#redis = redis;
    this.#inbox = inbox;
    this.#log = log;
    this.#recheck = setInterval(() => void this.#askAgain(), RECHECK_MS);
    redis.on("close", this.#countLoss);
    if (redis.status === "ready") this.#open();
    else redis.once("ready", this.#open);
  }

  /** Whether jobs can be added and their replies arrive. */
  get isOpen(): boolean {
    return this.#queue !== undefined && this.#inbox.isOpen;
  }

  /** Whether one more caller may wait: in this process, and behind the jobs that wait in the queue. Costs no round trip. */
  get hasRoom(): boolean {
    this.#measureDepth();
    return this.#waiters.size < WAITERS_MAX && this.#depth < this.#definition.waitingMax;
  }

  /** Adds a job without waiting for its reply. Rejects when Redis does not take it. */
  async add(jobId: string, data: Data, traceparent?: string): Promise<void> {
    if (this.#queue === undefined) throw new Error("Redis has not been reached yet");
    const envelope = { replyTo: this.#inbox.channel, ...(traceparent !== undefined && { traceparent }) };
    await this.#queue.add(this.#definition.name, { ...data, ...envelope }, { jobId });
  }

  /**
   * Adds a job and waits for its reply for at most `waitMs`. Never rejects. A job that no worker has started by then is taken
   * back, where its queue does so; about any other job without a reply nothing is known, a failed `add` included.
   * @param traceparent the trace that the job is part of (W3C Trace Context).
   */
  ask(jobId: string, data: Data, waitMs: number, traceparent?: string): Promise<Answer<Reply>> {
    return new Promise((resolve) => {
      const lostBefore = this.#connectionsLost;
      const timer = setTimeout(() => void this.#giveUp(jobId, lostBefore, waitMs), waitMs);
      const settle = (answer: Answer<Reply>) => {
        clearTimeout(timer);
        this.#waiters.delete(jobId);
        this.#inbox.forget(jobId);
        resolve(answer);
      };
      this.#waiters.set(jobId, { since: performance.now(), settle });
      this.#inbox.expect(jobId, (end) => settle(this.#read(end)));
      // A reply is as good as an acknowledgement of the add, and may come before it.
      this.add(jobId, data, traceparent).catch((cause: unknown) => settle({ kind: "unknown", cause }));
    });
  }

  /** Waiters still registered get `unknown`. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#recheck);
    this.#redis.off("ready", this.#open);
    this.#redis.off("close", this.#countLoss);
    for (const waiter of this.#waiters.values())
      waiter.settle({ kind: "unknown", cause: new Error("the process is closing") });
    await this.#queue?.close();
  }

  #read({ outcome, queuedMs, workedMs }: JobEnd): Answer<Reply> {
    if ("failure" in outcome) return { kind: "unknown", cause: new Error(outcome.failure) };
    const parsed = this.#reply.safeParse(outcome.reply);
    if (!parsed.success) return { kind: "unknown", cause: parsed.error };
    return { kind: "reply", reply: parsed.data, queuedMs, workedMs };
  }

  async #giveUp(jobId: string, lostBefore: number, waitMs: number): Promise<void> {
    // Only on the connection that added the job: a Redis that was restarted meanwhile may have forgotten that it was started.
    const withdrawn =
      this.#definition.takesBack && (await this.#withdraw(jobId)) && this.#connectionsLost === lostBefore;
    this.#waiters
      .get(jobId)
      ?.settle(
        withdrawn ? { kind: "withdrawn" } : { kind: "unknown", cause: new Error(`no reply within ${waitMs} ms`) },
      );
  }

  /** Learns from the queue itself how the jobs ended whose callers have waited for long. */
  async #askAgain(): Promise<void> {
    const queue = this.#queue;
    if (queue === undefined) return;
    const before = performance.now() - RECHECK_MS;
    const late = [...this.#waiters].filter(([, { since }]) => since < before).map(([jobId]) => jobId);
    if (late.length === 0) return;
    const reads = this.#redis.pipeline();
    for (const jobId of late)
      reads.hmget(queue.toKey(jobId), "finishedOn", "processedOn", "timestamp", "failedReason", "returnvalue");
    // When Redis does not answer, the next time is soon.
    const found = (await reads.exec().catch(() => null)) ?? [];
    for (const [index, [error, job]] of found.entries()) {
      const jobId = late[index];
      if (error !== null || jobId === undefined) continue;
      const [finishedOn, processedOn, timestamp, failure, reply] = job as (string | null)[];
      if (finishedOn == null) continue;
      const end: JobEnd = {
        jobId,
        outcome: failure == null ? { reply: JSON.parse(reply ?? "null") } : { failure },
        queuedMs: Number(processedOn) - Number(timestamp),
        workedMs: Number(finishedOn) - Number(processedOn),
      };
      this.#waiters.get(jobId)?.settle(this.#read(end));
    }
  }

  #measureDepth(): void {
    const now = performance.now();
    if (this.#queue === undefined || now < this.#depthDueAt) return;
    this.#depthDueAt = now + DEPTH_EVERY_MS;
    this.#redis.llen(this.#queue.toKey("wait")).then(
      (waiting) => {
        this.#depth = waiting;
      },
      // A queue that cannot be asked cannot be added to either.
      () => undefined,
    );
  }

  async #openUntilOpen(): Promise<void> {
    while (!this.#closed) {
      const queue = openQueue(this.#definition, this.#redis, this.#log);
      try {
        await queue.waitUntilReady();
        if (this.#closed) return await queue.close();
        this.#queue = queue;
        return;
      } catch (error) {
        // What BullMQ could not begin once it never begins again.
        this.#log.warn({ err: error, queue: this.#definition.name }, "the queue cannot be opened yet");
        await queue.close().catch(() => undefined);
        await sleep(OPEN_AGAIN_MS);
      }
    }
  }

  async #withdraw(jobId: string): Promise<boolean> {
    const queue = this.#queue;
    if (queue === undefined) return false;
    try {
      return (await this.#redis.eval(WITHDRAW, 2, queue.toKey("wait"), queue.toKey(jobId), jobId)) === 1;
    } catch (error) {
      this.#log.warn({ err: error, jobId }, "a job could not be withdrawn");
      return false;
    }
  }
}

const WITHDRAW = readFileSync(new URL("./withdraw.lua", import.meta.url), "utf8");
