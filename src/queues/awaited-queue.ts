import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Queue } from "bullmq";
import type { QueueDefinition } from "./catalog.ts";
import { openQueue, type QueueLinks } from "./open-queue.ts";
import { type JobEnd, parseEnd, type ReplyInbox } from "./replies.ts";
import { listShards, shardOf } from "./shards.ts";

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

/** How often idle workers are woken while a caller waits. Milliseconds. */
const WAKE_MS = 250;

export interface AwaitedQueueLinks extends QueueLinks {
  inbox: ReplyInbox;
  /** Called for each reply from another deployment or database. */
  onForeignReply: () => void;
}

interface Waiter<Reply> {
  /** The index of its job's shard. */
  shard: number;
  /** Replies from another deployment or database are ignored. */
  origin: string;
  /** On the monotonic clock. Milliseconds. */
  since: number;
  settle: (result: WaitResult<Reply>) => void;
}

/** A shard of the queue, and the number of jobs that wait in it. */
interface OpenShard {
  queue: Queue;
  depth: number;
  depthDueAt: number;
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
  readonly #open = () => void this.#openQueues();
  #closed = false;
  /** Empty until Redis is ready. */
  #shards: OpenShard[] = [];

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
    return this.#shards.length > 0 && this.#links.inbox.isOpen;
  }

  /** The channel on which replies arrive. */
  get replyChannel(): string {
    return this.#links.inbox.channel;
  }

  /** Whether one more caller may wait, in this process and in the job's shard of the queue. Costs no round trip. */
  hasRoomFor(data: Data): boolean {
    const shard = this.#shards[this.#shardOf(data)];
    if (shard !== undefined) this.#measureDepth(shard);
    const waitingMax = this.#definition.waitingMax / this.#links.shards;
    return this.#waiters.size < WAITERS_MAX && (shard?.depth ?? 0) < waitingMax;
  }

  #shardOf(data: Data): number {
    const { shardBy } = this.#definition;
    return shardBy === undefined ? 0 : shardOf(String(data[shardBy]), this.#links.shards);
  }

  async #add(jobId: string, data: Data, waiter: Waiter<Reply>, traceparent: string | undefined): Promise<void> {
    const shard = this.#shards[waiter.shard];
    if (shard === undefined) throw new Error("Redis has not been reached yet");
    const { origin } = waiter;
    const envelope = { origin, replyTo: this.replyChannel, ...(traceparent !== undefined && { traceparent }) };
    await shard.queue.add(this.#definition.name, { ...data, ...envelope }, { jobId });
  }

  /**
   * Adds a job and waits at most `waitMs` for its reply. Never rejects. With `withdrawOnTimeout`, an unstarted job is then removed. This does
   * not prove that the job never ran: a Redis that lost its last second may have forgotten the start.
   */
  addAndWait(jobId: string, data: Data, waitMs: number, traceparent?: string): Promise<WaitResult<Reply>> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => void this.#giveUp(jobId, waiter, waitMs), waitMs);
      const settle = (result: WaitResult<Reply>) => {
        clearTimeout(timer);
        this.#waiters.delete(jobId);
        this.#links.inbox.forget(jobId);
        resolve(result);
      };
      const { origin } = this.#links.deployment;
      const waiter = { shard: this.#shardOf(data), origin, since: performance.now(), settle };
      this.#waiters.set(jobId, waiter);
      this.#links.inbox.expect(jobId, (end) => settle(this.#read(end, origin)));
      // The reply may arrive before the acknowledgement of the add, and makes it unnecessary.
      this.#add(jobId, data, waiter, traceparent).catch((cause: unknown) => settle({ kind: "unknown", cause }));
    });
  }

  /** Ends all waits without a reply. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#links.redis.off("ready", this.#open);
    for (const waiter of this.#waiters.values())
      waiter.settle({ kind: "unknown", cause: new Error("the process is closing") });
    await Promise.all(this.#shards.map(({ queue }) => queue.close()));
  }

  #read({ outcome, queuedMs, workedMs }: JobEnd, origin: string): WaitResult<Reply> {
    if ("failure" in outcome) return { kind: "unknown", cause: new Error(outcome.failure) };
    // The process's database may have changed since, for example to a promoted standby.
    const replyOrigin = (outcome.reply as { origin?: unknown } | null)?.origin;
    if (replyOrigin !== origin || replyOrigin !== this.#links.deployment.origin) {
      this.#links.onForeignReply();
      return { kind: "unknown", cause: new Error("the reply is from another deployment or database") };
    }
    const parsed = this.#definition.reply.safeParse(outcome.reply);
    if (!parsed.success) return { kind: "unknown", cause: parsed.error };
    return { kind: "reply", reply: parsed.data, queuedMs, workedMs };
  }

  async #giveUp(jobId: string, waiter: Waiter<Reply>, waitMs: number): Promise<void> {
    if (this.#definition.withdrawOnTimeout) await this.#withdraw(jobId, waiter.shard);
    waiter.settle({ kind: "unknown", cause: new Error(`no reply within ${waitMs} ms`) });
  }

  /** Reads from the queue itself the results of jobs whose callers have waited long. */
  async #recheckWaiters(): Promise<void> {
    const late = this.#listWaiters(RECHECK_MS);
    await Promise.all(this.#shards.map(({ queue }, index) => this.#recheckJobs(queue, late.get(index) ?? [])));
  }

  /** The ids of jobs whose callers have waited for this long, by shard. */
  #listWaiters(waitedMs: number): Map<number, string[]> {
    const before = performance.now() - waitedMs;
    const late = new Map<number, string[]>();
    for (const [jobId, { shard, since }] of this.#waiters) {
      if (since >= before) break;
      late.set(shard, [...(late.get(shard) ?? []), jobId]);
    }
    return late;
  }

  /** The jobs are of one shard, because a pipeline is sent to one node. */
  async #recheckJobs(queue: Queue, late: readonly string[]): Promise<void> {
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

  /** Restores the marker that wakes idle workers: a killed one may have taken it. Does nothing unless callers wait. */
  #wakeWorkers(): void {
    for (const index of this.#listWaiters(WAKE_MS).keys()) {
      const queue = this.#shards[index]?.queue;
      if (queue === undefined) continue;
      const keys = ["wait", "meta", "marker"].map((key) => queue.toKey(key));
      // If Redis does not answer, the next attempt is soon.
      this.#links.redis.eval(WAKE, keys.length, ...keys).catch(() => undefined);
    }
  }

  #measureDepth(shard: OpenShard): void {
    const now = performance.now();
    if (now < shard.depthDueAt) return;
    shard.depthDueAt = now + DEPTH_EVERY_MS;
    this.#links.redis.llen(shard.queue.toKey("wait")).then(
      (waiting) => {
        shard.depth = waiting;
      },
      // If the depth cannot be read, adding will fail as well.
      () => undefined,
    );
  }

  async #openQueues(): Promise<void> {
    const { deployment, shards, redis, log } = this.#links;
    await deployment.ready();
    while (!this.#closed) {
      const queues = listShards(deployment.id, shards).map((shard) => openQueue(this.#definition, shard, redis, log));
      try {
        await Promise.all(queues.map((queue) => queue.waitUntilReady()));
        this.#shards = queues.map((queue) => ({ queue, depth: 0, depthDueAt: 0 }));
        if (this.#closed) await this.close();
        return;
      } catch (error) {
        // BullMQ never retries a failed initialisation.
        log.warn({ err: error, queue: this.#definition.name }, "the queue cannot be opened yet");
        await Promise.allSettled(queues.map((queue) => queue.close()));
        await sleep(OPEN_AGAIN_MS);
      }
    }
  }

  async #withdraw(jobId: string, shard: number): Promise<void> {
    const queue = this.#shards[shard]?.queue;
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
