import { readFileSync } from "node:fs";
import { setTimeout as sleep, setImmediate as untilInputIsRead } from "node:timers/promises";
import type { Queue } from "bullmq";
import { CallerLeft, FairSlots } from "../batching/fair-slots.ts";
import { Shares } from "../batching/shares.ts";
import { type JobEnd, jobEnd } from "./job-envelope.ts";
import { openQueue, type QueueResources } from "./open-queue.ts";
import { type QueueDefinition, waitingMaxOfShard } from "./queue-settings.ts";
import { parseOrNull, type ReplyInbox } from "./reply-inbox.ts";
import { listShards, shardOf } from "./shards.ts";

/** What a caller learns about its job. */
export type WaitResult<Reply> =
  /** `queuedMs`: how long the job waited for a worker. `workedMs`: how long the worker took to run it. */
  | { kind: "reply"; reply: Reply; queuedMs: number; workedMs: number }
  /** The job may have run, may be running or may run later. Only the database shows whether the job has run. */
  | { kind: "unknown"; cause: unknown };

/** Maximum number of callers that wait in one process. Further callers are refused at once. */
const CALLERS_MAX = 2_000;
/**
 * Maximum number of a process's jobs that are in the queue at once. Each owner may have at most half of them. A shard
 * runs its jobs in order, so other owners may wait for that half: a quarter of a second for each API process.
 */
const JOBS_MAX = 500;
/** How often the number of waiting jobs is measured, as long as callers arrive. Milliseconds. */
const DEPTH_EVERY_MS = 250;
/** How long a measured number of waiting jobs is considered valid. Milliseconds. */
const DEPTH_KNOWN_MS = 1_000;
/** Pause between attempts to open the queue. Milliseconds. */
const OPEN_AGAIN_MS = 500;
/** How often the process checks whether an awaited job has ended, because its reply may be lost. Milliseconds. */
const RECHECK_MS = 1_000;
/** How often idle workers are woken while callers wait. Milliseconds. */
const WAKE_MS = 250;

const WAKE = readFileSync(new URL("./wake.lua", import.meta.url), "utf8");
const WITHDRAW = readFileSync(new URL("./withdraw.lua", import.meta.url), "utf8");

/** The resources of a process that an awaited queue uses. */
export interface AwaitedResources extends QueueResources {
  inbox: ReplyInbox;
  /** Ends all waits when it aborts, as the process closes. */
  endRuns: AbortSignal;
  /** Called for each reply from another deployment or database. */
  onForeignReply: () => void;
}

const CLOSING = new Error("the process is closing");

interface Waiter<Reply> {
  shard: OpenShard;
  /** The server that this process used when it added the job. A reply from another server is ignored. */
  origin: string;
  /** The time on the monotonic clock when the wait began. Milliseconds. */
  since: number;
  /** Whether Redis has acknowledged the job. */
  isAdded: boolean;
  /** Whether the last check did not find the job, although it was added. */
  isMissing: boolean;
  settle: (result: WaitResult<Reply>) => void;
}

/** A shard of the queue, and how many jobs waited in it at the last measurement. Times are on the monotonic clock. */
interface OpenShard {
  queue: Queue;
  depth: number;
  depthReadAt: number;
  depthDueAt: number;
}

/**
 * Adds jobs and waits for their replies, which workers send to the process's inbox. Registers the wait before it adds
 * the job, so no reply can arrive too early. Job ids must never repeat. The queue opens when Redis is ready for the
 * first time.
 */
export class AwaitedQueue<Data, Reply> {
  readonly #definition: QueueDefinition<Data, Reply>;
  readonly #resources: AwaitedResources;
  /** Waiting callers by job id, oldest first. */
  readonly #waiters = new Map<string, Waiter<Reply>>();
  /** Counts the waiting callers, with or without a job in the queue. */
  readonly #places = new Shares(CALLERS_MAX);
  readonly #jobs = new FairSlots(JOBS_MAX);
  readonly #timers: NodeJS.Timeout[];
  readonly #open = () => void this.#openQueues();
  #closed = false;
  readonly replyChannel: string;
  /** Empty until the queue opens. */
  #shards: OpenShard[] = [];

  constructor(definition: QueueDefinition<Data, Reply>, resources: AwaitedResources) {
    const { redis, inbox, endRuns } = resources;
    this.#definition = definition;
    this.#resources = resources;
    this.replyChannel = inbox.channel;
    inbox.listen((end) => this.#receive(end));
    endRuns.addEventListener("abort", () => {
      for (const [jobId, waiter] of this.#waiters) void this.#giveUp(jobId, waiter, CLOSING);
    });
    this.#timers = [
      setInterval(() => this.#recheckLate(), RECHECK_MS),
      setInterval(() => this.#wakeWorkers(), WAKE_MS),
    ];
    if (redis.status === "ready") this.#open();
    else redis.once("ready", this.#open);
  }

  /** Whether the queue has ever opened. Redis may be unreachable now. */
  get hasOpened(): boolean {
    return this.#shards.length > 0 && this.#resources.inbox.hasOpened;
  }

  /**
   * Whether one more caller may wait, in this process and in the job's shard. Answers at once. It may start a
   * measurement of the shard for later calls.
   */
  askForPlace(data: Data): boolean {
    const shard = this.#shardOf(data);
    const isFull = shard !== undefined && this.#isFull(shard);
    return this.#places.hasRoom(this.#ownerOf(data)) && !isFull;
  }

  #isFull(shard: OpenShard): boolean {
    void this.#measureDepth(shard);
    const isKnown = performance.now() - shard.depthReadAt < DEPTH_KNOWN_MS;
    return isKnown && shard.depth >= waitingMaxOfShard(this.#definition, this.#resources.shards);
  }

  /** The owner of a job. If the queue's settings name no field for owners, all jobs have the same owner. */
  #ownerOf(data: Data): string {
    const { ownedBy } = this.#definition;
    return ownedBy === undefined ? "" : String((data as Record<string, unknown>)[ownedBy]);
  }

  #shardOf(data: Data): OpenShard | undefined {
    const { shardBy } = this.#definition;
    if (shardBy === undefined) return this.#shards[0];
    return this.#shards[shardOf(String((data as Record<string, unknown>)[shardBy]), this.#resources.shards)];
  }

  /**
   * Adds a job and waits for its reply, for at most `waitMs` or until the process closes. Never rejects. While the
   * owner has its maximum number of jobs in the queue, waits before it adds the job.
   *
   * With `withdrawOnTimeout`, removes a job that no worker has started when the wait ends, or that Redis does not
   * acknowledge. A removed job may still have run: Redis may have lost the fact that a worker started it. With
   * `removeOnFail`, a failed job is not kept.
   */
  async addAndWait(
    jobId: string,
    data: Data,
    waitMs: number,
    options: { traceparent?: string | undefined; removeOnFail?: true } = {},
  ): Promise<WaitResult<Reply>> {
    const owner = this.#ownerOf(data);
    const giveUpAt = performance.now() + waitMs;
    const inLine = this.#jobs.hasRoom(owner) ? undefined : AbortSignal.timeout(waitMs);
    this.#places.take(owner);
    const leftMs = () => Math.max(1, Math.ceil(giveUpAt - performance.now()));
    try {
      return await this.#jobs.run(owner, () => this.#addAndWait(jobId, data, leftMs(), options), inLine);
    } catch (error) {
      if (error instanceof CallerLeft) return unknown(`no job was added within ${waitMs} ms`);
      throw error;
    } finally {
      this.#places.release(owner);
    }
  }

  #addAndWait(
    jobId: string,
    data: Data,
    waitMs: number,
    { traceparent, removeOnFail }: { traceparent?: string | undefined; removeOnFail?: true },
  ): Promise<WaitResult<Reply>> {
    return new Promise((resolve) => {
      const shard = this.#shardOf(data);
      if (shard === undefined) return resolve(unknown("Redis has not been reached yet"));
      if (this.#closed || this.#resources.endRuns.aborted) return resolve({ kind: "unknown", cause: CLOSING });
      const giveUp = (cause: unknown) => void this.#giveUp(jobId, waiter, cause);
      const timer = setTimeout(() => giveUp(new Error(`no reply within ${waitMs} ms`)), waitMs);
      const settle = (result: WaitResult<Reply>) => {
        clearTimeout(timer);
        this.#waiters.delete(jobId);
        resolve(result);
      };
      const { serverId: origin } = this.#resources.deployment;
      const waiter: Waiter<Reply> = {
        shard,
        origin,
        since: performance.now(),
        isAdded: false,
        isMissing: false,
        settle,
      };
      this.#waiters.set(jobId, waiter);
      const envelope = { origin, replyTo: this.replyChannel, ...(traceparent !== undefined && { traceparent }) };
      // Awaits only the reply, because it may arrive before Redis has acknowledged the job.
      const added = shard.queue.add(
        this.#definition.name,
        { ...data, ...envelope },
        { jobId, ...(removeOnFail && { removeOnFail }) },
      );
      added.then(() => {
        waiter.isAdded = true;
      }, giveUp);
    });
  }

  /** Ends all waits without a reply. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#resources.redis.off("ready", this.#open);
    for (const { settle } of this.#waiters.values()) settle({ kind: "unknown", cause: CLOSING });
    await Promise.all(this.#shards.map(({ queue }) => queue.close()));
  }

  #receive(end: JobEnd): void {
    const waiter = this.#waiters.get(end.jobId);
    waiter?.settle(this.#read(end, waiter.origin));
  }

  #read({ outcome, queuedMs, workedMs }: JobEnd, origin: string): WaitResult<Reply> {
    if ("failure" in outcome) return unknown(outcome.failure);
    // Compares with the current server too, because the process may use another server by now, such as a promoted
    // standby.
    const replyOrigin = (outcome.reply as { origin?: unknown } | null)?.origin;
    if (replyOrigin !== origin || replyOrigin !== this.#resources.deployment.serverId) {
      this.#resources.onForeignReply();
      return unknown("the reply is from another deployment or database");
    }
    const parsed = this.#definition.reply.safeParse(outcome.reply);
    if (!parsed.success) return { kind: "unknown", cause: parsed.error };
    return { kind: "reply", reply: parsed.data, queuedMs, workedMs };
  }

  /**
   * Ends a wait after one more read of the input. After the process was frozen, timers run before it reads the replies
   * that have arrived.
   */
  async #giveUp(jobId: string, waiter: Waiter<Reply>, cause: unknown): Promise<void> {
    await untilInputIsRead();
    if (!this.#waiters.has(jobId)) return;
    waiter.settle({ kind: "unknown", cause });
    if (!this.#definition.withdrawOnTimeout) return;
    const { redis, log } = this.#resources;
    const keys = ["wait", jobId].map((key) => waiter.shard.queue.toKey(key));
    // Ignores a failure: the job may then still run.
    redis
      .eval(WITHDRAW, keys.length, ...keys, jobId)
      .catch((error) => log.debug({ err: error, jobId }, "a job could not be withdrawn"));
  }

  /** For callers that have waited for long, reads from the queue itself whether their jobs have ended. */
  #recheckLate(): void {
    for (const [{ queue }, jobIds] of this.#listLate(RECHECK_MS)) void this.#recheck(queue, jobIds);
  }

  /** The jobs whose callers have waited at least this long, by shard. */
  #listLate(waitedMs: number): Map<OpenShard, string[]> {
    const before = performance.now() - waitedMs;
    const late = new Map<OpenShard, string[]>();
    for (const [jobId, { shard, since }] of this.#waiters) {
      if (since >= before) break;
      const ofShard = late.get(shard);
      if (ofShard === undefined) late.set(shard, [jobId]);
      else ofShard.push(jobId);
    }
    return late;
  }

  /** Reads the results of jobs of one shard, because a pipeline is sent to one node. */
  async #recheck(queue: Queue, late: readonly string[]): Promise<void> {
    const reads = this.#resources.redis.pipeline();
    for (const jobId of late)
      reads.hmget(queue.toKey(jobId), "finishedOn", "processedOn", "timestamp", "failedReason", "returnvalue");
    const added = new Set(late.filter((jobId) => this.#waiters.get(jobId)?.isAdded));
    // Ignores an error of Redis, because the next check follows within a second.
    const found = (await reads.exec().catch(() => null)) ?? [];
    for (const [index, jobId] of late.entries()) {
      const [error, values] = found[index] ?? [];
      if (error !== null) continue;
      const [finishedOn, processedOn, timestamp, failure, reply] = values as (string | null)[];
      if (timestamp != null || added.has(jobId)) this.#noteFound(jobId, timestamp != null);
      if (finishedOn == null) continue;
      const end = parseOrNull(jobEnd, () => ({
        jobId,
        outcome: failure == null ? { reply: JSON.parse(reply ?? "null") } : { failure },
        queuedMs: Number(processedOn) - Number(timestamp),
        workedMs: Number(finishedOn) - Number(processedOn),
      }));
      if (end !== null) this.#receive(end);
      else this.#waiters.get(jobId)?.settle(unknown("the queue's record of the job cannot be read"));
    }
  }

  /**
   * Records whether a check has found a job, and gives up a job that two consecutive checks did not find. If Redis lost
   * the job while a worker was running it, the worker may reply between the two checks.
   */
  #noteFound(jobId: string, isFound: boolean): void {
    const waiter = this.#waiters.get(jobId);
    if (waiter === undefined) return;
    if (!isFound && waiter.isMissing) waiter.settle(unknown("Redis no longer has the job"));
    waiter.isMissing = !isFound;
  }

  /**
   * Restores the marker in Redis that wakes idle workers. A killed worker may have taken it without running a job. Does
   * nothing if no caller waits.
   */
  #wakeWorkers(): void {
    for (const { queue } of this.#listLate(WAKE_MS).keys()) {
      const keys = ["wait", "meta", "marker"].map((key) => queue.toKey(key));
      // Ignores an error of Redis, because the next attempt follows soon.
      this.#resources.redis.eval(WAKE, keys.length, ...keys).catch(() => undefined);
    }
  }

  async #measureDepth(shard: OpenShard): Promise<void> {
    const now = performance.now();
    if (now < shard.depthDueAt) return;
    shard.depthDueAt = now + DEPTH_EVERY_MS;
    // Ignores an error: adding the job will fail as well.
    const depth = await this.#resources.redis.llen(shard.queue.toKey("wait")).catch(() => null);
    if (depth !== null) Object.assign(shard, { depth, depthReadAt: performance.now() });
  }

  async #openQueues(): Promise<void> {
    const { deployment, shards, redis, log } = this.#resources;
    await deployment.ready();
    while (!this.#closed) {
      const queues = listShards(deployment.id, shards).map((shard) => openQueue(this.#definition, shard, redis, log));
      try {
        await Promise.all(queues.map((queue) => queue.waitUntilReady()));
        this.#shards = queues.map((queue) => ({ queue, depth: 0, depthReadAt: 0, depthDueAt: 0 }));
        if (this.#closed) await this.close();
        return;
      } catch (error) {
        // Closes the queues and opens new ones, because BullMQ does not repeat a failed initialisation.
        log.warn({ err: error, queue: this.#definition.name }, "the queue cannot be opened yet");
        await Promise.allSettled(queues.map((queue) => queue.close()));
        await sleep(OPEN_AGAIN_MS);
      }
    }
  }
}

const unknown = (message: string) => ({ kind: "unknown" as const, cause: new Error(message) });
