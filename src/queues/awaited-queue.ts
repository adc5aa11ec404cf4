import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Queue, QueueEvents } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { z } from "zod";
import { PREFIX, type QueueDefinition } from "./catalog.ts";
import { patient } from "./connections.ts";
import { logErrors } from "./log-errors.ts";
import { openQueue } from "./open-queue.ts";

/** How waiting for a job ended. */
export type Answer<Reply> =
  | { kind: "reply"; reply: Reply }
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

interface Waiter<Reply> {
  settle: (answer: Answer<Reply>) => void;
}

/**
 * The producing end of a queue: adds jobs and waits for their replies. One event reader serves all waiters of the process; a
 * waiter is registered before its job is added, so no reply comes too early. Ids are the caller's and must never repeat.
 *
 * Needs Redis only while it is used: it opens by itself when the connection is ready for the first time.
 */
export class AwaitedQueue<Data, Reply> {
  readonly #definition: QueueDefinition<Data>;
  readonly #reply: z.ZodType<Reply>;
  readonly #redis: Redis;
  readonly #log: Logger;
  readonly #waiters = new Map<string, Waiter<Reply>>();
  readonly #open: () => void;
  readonly #countLoss = () => {
    this.#connectionsLost += 1;
  };
  #closed = false;
  /** Connections to Redis that were lost. Behind each may be a server that came back without its last second. */
  #connectionsLost = 0;
  #depth = 0;
  #depthDueAt = 0;
  #queue: Queue | undefined;
  #events: QueueEvents | undefined;

  /** @param redis a fail-fast connection, which stays the caller's to close. */
  constructor(definition: QueueDefinition<Data>, reply: z.ZodType<Reply>, redis: Redis, redisUrl: string, log: Logger) {
    this.#definition = definition;
    this.#reply = reply;
    this.#redis = redis;
    this.#log = log;
    this.#open = () => void this.#openUntilOpen(redisUrl);
    redis.on("close", this.#countLoss);
    if (redis.status === "ready") this.#open();
    else redis.once("ready", this.#open);
  }

  /** Whether jobs can be added. */
  get isOpen(): boolean {
    return this.#queue !== undefined;
  }

  /** Whether one more caller may wait: in this process, and behind the jobs that wait in the queue. Costs no round trip. */
  get hasRoom(): boolean {
    this.#measureDepth();
    return this.#waiters.size < WAITERS_MAX && this.#depth < this.#definition.waitingMax;
  }

  /** Adds a job without waiting for its reply. Rejects when Redis does not take it. */
  async add(jobId: string, data: Data): Promise<void> {
    if (this.#queue === undefined) throw new Error("Redis has not been reached yet");
    await this.#queue.add(this.#definition.name, data, { jobId });
  }

  /**
   * Adds a job and waits for its reply for at most `waitMs`. Never rejects. A job that no worker has started by then is taken
   * back, where its queue does so; about any other job without a reply nothing is known, a failed `add` included.
   */
  async ask(jobId: string, data: Data, waitMs: number): Promise<Answer<Reply>> {
    const answered = new Promise<Answer<Reply>>((resolve) => this.#waiters.set(jobId, { settle: resolve }));
    const lostBefore = this.#connectionsLost;
    let timer: NodeJS.Timeout | undefined;
    const timedOut = new Promise<"timeout">((resolve) => {
      timer = setTimeout(resolve, waitMs, "timeout");
    });
    try {
      // A reply is as good as an acknowledgement of the add, and may come before it.
      const added = this.add(jobId, data).then(
        () => answered,
        (cause: unknown): Answer<Reply> => ({ kind: "unknown", cause }),
      );
      const first = await Promise.race([answered, added, timedOut]);
      if (first !== "timeout") return first;
      // Only on the connection that added the job: a Redis that was restarted meanwhile may have forgotten that it was started.
      const { takesBack } = this.#definition;
      if (takesBack && (await this.#withdraw(jobId)) && this.#connectionsLost === lostBefore)
        return { kind: "withdrawn" };
      return { kind: "unknown", cause: new Error(`no reply within ${waitMs} ms`) };
    } finally {
      clearTimeout(timer);
      this.#waiters.delete(jobId);
    }
  }

  /** Stops reading events. Waiters still registered get `unknown`. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#redis.off("ready", this.#open);
    this.#redis.off("close", this.#countLoss);
    for (const waiter of this.#waiters.values())
      waiter.settle({ kind: "unknown", cause: new Error("the process is closing") });
    await this.#events?.close();
    await this.#queue?.close();
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

  async #openUntilOpen(redisUrl: string): Promise<void> {
    while (!this.#closed) {
      const queue = openQueue(this.#definition, this.#redis, this.#log);
      try {
        await queue.waitUntilReady();
        // Asked on the connection that adds the jobs, so before any of them: the reader starts right behind this event.
        const [last] = await this.#redis.xrevrange(queue.toKey("events"), "+", "-", "COUNT", 1);
        if (this.#closed) return await queue.close();
        this.#events = this.#openEvents(redisUrl, last?.[0] ?? "0-0");
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

  #openEvents(redisUrl: string, lastEventId: string): QueueEvents {
    const { name } = this.#definition;
    const events = new QueueEvents(name, {
      prefix: PREFIX,
      connection: patient(redisUrl, `${name}-events`),
      lastEventId,
      blockingTimeout: 5_000,
    });
    logErrors(events, this.#log.child({ queue: name }), "queue events");
    events.on("completed", ({ jobId, returnvalue }) => {
      const waiter = this.#waiters.get(jobId);
      if (waiter === undefined) return;
      const parsed = this.#reply.safeParse(returnvalue);
      waiter.settle(parsed.success ? { kind: "reply", reply: parsed.data } : { kind: "unknown", cause: parsed.error });
    });
    events.on("failed", ({ jobId, failedReason }) => {
      this.#waiters.get(jobId)?.settle({ kind: "unknown", cause: new Error(failedReason) });
    });
    return events;
  }
}

const WITHDRAW = readFileSync(new URL("./withdraw.lua", import.meta.url), "utf8");
