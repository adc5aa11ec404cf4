import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import type { QueueDefinition } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";
import { type JobEnd, parseEnd, type ReplyInbox } from "./replies.ts";

/** What a caller learns about its job. */
export type WaitResult<Reply> =
  /** `queuedMs`: the wait for a worker. `workedMs`: the worker's time. */
  | { kind: "reply"; reply: Reply; queuedMs: number; workedMs: number }
  /** The job may have run, may be running or may still run. Only the database can tell. */
  | { kind: "unknown"; cause: unknown };

/** Callers that may wait in one process. Beyond that, callers are refused at once. */
const WAITERS_MAX = 2_000;

/** How often the number of waiting jobs is measured while callers arrive. Milliseconds. */
const DEPTH_EVERY_MS = 250;

/** Pause between attempts to open the queue. Milliseconds. */
const OPEN_AGAIN_MS = 500;

/** How often a waiting caller checks in Redis whether its job has ended, in case the reply was lost. Milliseconds. */
const RECHECK_MS = 1_000;

/** What the queue shares with its process, which closes it. */
export interface AwaitedQueueLinks {
  /** A fail-fast connection. */
  redis: Redis;
  inbox: ReplyInbox;
  deployment: DeploymentIdentity;
  log: Logger;
  /** Called for each reply from another deployment or database. */
  onForeignReply: () => void;
}

/** How often idle workers are woken while a caller waits. Milliseconds. */
const WAKE_MS = 250;

interface Waiter<Reply> {
  /** Replies from another deployment or database are ignored. */
  origin: string;
  /** On the monotonic clock. Milliseconds. */
  since: number;
  settle: (result: WaitResult<Reply>) => void;
}

/**
 * Adds jobs and waits for their replies, which workers send to the process's inbox. A waiter is registered before its job is added, so no
 * reply arrives too early. Job ids must never repeat. The queue opens when Redis is first ready.
 */
export class AwaitedQueue<Data, Reply> {
  readonly #definition: QueueDefinition<Data, Reply>;
  readonly #links: AwaitedQueueLinks;
  /** By job id, oldest first. */
  readonly #waiters = new Map<string, Waiter<Reply>>();
  readonly #timers: NodeJS.Timeout[];
  readonly #open = () => void this.#openUntilOpen();
  #closed = false;
  #depth = 0;
  #depthDueAt = 0;
  #queue: Queue | undefined;

  constructor(definition: QueueDefinition<Data, Reply>, links: AwaitedQueueLinks) {
    const { redis } = links;
    this.#definition = definition;
    this.#links = links;
    this.#timers = [
      setInterval(() => void this.#recheckWaiters(), RECHECK_MS),
      setInterval(() => this.#wakeWorkers(), WAKE_MS),
    ];
    if (redis.status === "ready") this.#open();
    else redis.once("ready", this.#open);
  }

  /** Whether jobs can be added and their replies arrive. */
  get isOpen(): boolean {
    return this.#queue !== undefined && this.#links.inbox.isOpen;
  }

  /** Whether one more caller may wait, in this process and in the queue. Costs no round trip. */
  get hasRoom(): boolean {
    this.#measureDepth();
    return this.#waiters.size < WAITERS_MAX && this.#depth < this.#definition.waitingMax;
  }

  async #add(jobId: string, data: Data, origin: string, traceparent: string | undefined): Promise<void> {
    if (this.#queue === undefined) throw new Error("Redis has not been reached yet");
    const envelope = { origin, replyTo: this.#links.inbox.channel, ...(traceparent !== undefined && { traceparent }) };
    await this.#queue.add(this.#definition.name, { ...data, ...envelope }, { jobId });
  }

  /**
   * Adds a job and waits at most `waitMs` for its reply. Never rejects. With `withdrawOnTimeout`, an unstarted job is then removed. This does
   * not prove that the job never ran: a Redis that lost its last second may have forgotten the start.
   */
  addAndWait(jobId: string, data: Data, waitMs: number, traceparent?: string): Promise<WaitResult<Reply>> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => void this.#giveUp(jobId, waitMs), waitMs);
      const settle = (result: WaitResult<Reply>) => {
        clearTimeout(timer);
        this.#waiters.delete(jobId);
        this.#links.inbox.forget(jobId);
        resolve(result);
      };
      const { origin } = this.#links.deployment;
      this.#waiters.set(jobId, { origin, since: performance.now(), settle });
      this.#links.inbox.expect(jobId, (end) => settle(this.#read(end, origin)));
      // The reply may arrive before the acknowledgement of the add, and makes it unnecessary.
      this.#add(jobId, data, origin, traceparent).catch((cause: unknown) => settle({ kind: "unknown", cause }));
    });
  }

  /** Ends all waits without a reply. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#links.redis.off("ready", this.#open);
    for (const waiter of this.#waiters.values())
      waiter.settle({ kind: "unknown", cause: new Error("the process is closing") });
    await this.#queue?.close();
  }

  #read({ outcome, queuedMs, workedMs }: JobEnd, origin: string): WaitResult<Reply> {
    if ("failure" in outcome) return { kind: "unknown", cause: new Error(outcome.failure) };
    // The database of this process may have changed since the job was added: a standby was promoted.
    const replyOrigin = (outcome.reply as { origin?: unknown } | null)?.origin;
    if (replyOrigin !== origin || replyOrigin !== this.#links.deployment.origin) {
      this.#links.onForeignReply();
      return { kind: "unknown", cause: new Error("the reply is from another deployment or database") };
    }
    const parsed = this.#definition.reply.safeParse(outcome.reply);
    if (!parsed.success) return { kind: "unknown", cause: parsed.error };
    return { kind: "reply", reply: parsed.data, queuedMs, workedMs };
  }

  async #giveUp(jobId: string, waitMs: number): Promise<void> {
    if (this.#definition.withdrawOnTimeout) await this.#withdraw(jobId);
    this.#waiters.get(jobId)?.settle({ kind: "unknown", cause: new Error(`no reply within ${waitMs} ms`) });
  }

  /** Reads the results of jobs whose callers have waited long from the queue itself. */
  async #recheckWaiters(): Promise<void> {
    const queue = this.#queue;
    if (queue === undefined) return;
    const before = performance.now() - RECHECK_MS;
    const late = [...this.#waiters].filter(([, { since }]) => since < before).map(([jobId]) => jobId);
    if (late.length === 0) return;
    const reads = this.#links.redis.pipeline();
    for (const jobId of late)
      reads.hmget(queue.toKey(jobId), "finishedOn", "processedOn", "timestamp", "failedReason", "returnvalue");
    // If Redis does not answer, the next attempt is soon.
    const found = (await reads.exec().catch(() => null)) ?? [];
    for (const [index, [error, job]] of found.entries()) {
      const jobId = late[index];
      if (error !== null || jobId === undefined) continue;
      const [finishedOn, processedOn, timestamp, failure, reply] = job as (string | null)[];
      if (finishedOn == null) continue;
      const end = parseEnd(() => ({
        jobId,
        outcome: failure == null ? { reply: JSON.parse(reply ?? "null") } : { failure },
        queuedMs: Number(processedOn) - Number(timestamp),
        workedMs: Number(finishedOn) - Number(processedOn),
      }));
      const unreadable: WaitResult<Reply> = {
        kind: "unknown",
        cause: new Error("the queue's record of the job cannot be read"),
      };
      const waiter = this.#waiters.get(jobId);
      waiter?.settle(end === null ? unreadable : this.#read(end, waiter.origin));
    }
  }

  /** A killed worker may have taken the marker that wakes idle ones. Sends nothing while no caller has waited long. */
  #wakeWorkers(): void {
    const queue = this.#queue;
    const [oldest] = this.#waiters.values();
    if (queue === undefined || oldest === undefined || oldest.since > performance.now() - WAKE_MS) return;
    const keys = ["wait", "meta", "marker"].map((key) => queue.toKey(key));
    // If Redis does not answer, the next attempt is soon.
    this.#links.redis.eval(WAKE, keys.length, ...keys).catch(() => undefined);
  }

  #measureDepth(): void {
    const now = performance.now();
    if (this.#queue === undefined || now < this.#depthDueAt) return;
    this.#depthDueAt = now + DEPTH_EVERY_MS;
    this.#links.redis.llen(this.#queue.toKey("wait")).then(
      (waiting) => {
        this.#depth = waiting;
      },
      // If the depth cannot be read, adding will fail as well.
      () => undefined,
    );
  }

  async #openUntilOpen(): Promise<void> {
    await this.#links.deployment.ready();
    while (!this.#closed) {
      const queue = openQueue(this.#definition, this.#links.deployment.id, this.#links.redis, this.#links.log);
      try {
        await queue.waitUntilReady();
        if (this.#closed) return await queue.close();
        this.#queue = queue;
        return;
      } catch (error) {
        // BullMQ never retries a failed initialisation.
        this.#links.log.warn({ err: error, queue: this.#definition.name }, "the queue cannot be opened yet");
        await queue.close().catch(() => undefined);
        await sleep(OPEN_AGAIN_MS);
      }
    }
  }

  async #withdraw(jobId: string): Promise<void> {
    const queue = this.#queue;
    if (queue === undefined) return;
    try {
      await this.#links.redis.eval(WITHDRAW, 2, queue.toKey("wait"), queue.toKey(jobId), jobId);
    } catch (error) {
      this.#links.log.warn({ err: error, jobId }, "a job could not be withdrawn");
    }
  }
}

const WAKE = readFileSync(new URL("./wake.lua", import.meta.url), "utf8");
const WITHDRAW = readFileSync(new URL("./withdraw.lua", import.meta.url), "utf8");
