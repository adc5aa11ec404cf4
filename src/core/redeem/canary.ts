import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../../platform/config.ts";
import type { Closable } from "../../platform/lifetime.ts";
import type { AwaitedQueue } from "../../platform/queues/awaited-queue.ts";
import { UNREADABLE_JOB } from "../../platform/queues/job-envelope.ts";
import { shardOf } from "../../platform/queues/shards.ts";
import { type Percentiles, percentileOf } from "../processes/latency-buckets.ts";
import type { CanaryJob, RedeemJob, RedeemReply } from "./job.ts";

/** Pause between two canaries (test jobs) of a shard. Milliseconds. */
const EVERY_MS = 5_000;
/** Minimum pause between two canaries of a process. With over twenty shards, each shard gets fewer. Milliseconds. */
const APART_MS = 250;
/** Pause after a canary without an answer. Milliseconds. */
const AGAIN_MS = 1_000;
/** Maximum wait for an answer. Callers of redeems may wait longer. Milliseconds. */
const WAIT_MAX_MS = 10_000;
/** A shard without an answer for this long counts as silent. A failover takes a few seconds. Milliseconds. */
export const SILENT_MS = 15_000;
/** Maximum time between two answers when there is no fault. Milliseconds. */
export const FRESH_MS = 7_000;
/** Step in which the time without an answer is counted. A frozen process counts only one step. Milliseconds. */
const STEP_MS = 500;
/** The latency is computed from the canaries of this period. Milliseconds. */
const LATENCY_SPAN_MS = 300_000;

interface Deps {
  config: Pick<Config, "queueShards" | "redeemWaitMs">;
  redeemQueue: Pick<AwaitedQueue<RedeemJob | CanaryJob, RedeemReply>, "addAndWait">;
  process: { readonly id: string };
}

/** What the canaries of a process tell about redemptions. */
export interface CanaryState {
  /** How long all shards together have given no answer. Milliseconds. */
  silentMs: number;
  /** How long each shard has given no answer. Milliseconds. */
  shards: readonly number[];
  /** The indexes of the shards that redeem nothing although other shards redeem. */
  silentShards: readonly number[];
  latencyMs: Percentiles;
}

/**
 * Asks every few seconds, in each shard of the redeem queue, whether vouchers can be redeemed. It adds a job that
 * redeems nothing, and awaits it like a redeem. A worker commits the job in a batch with redeems. So a canary does
 * everything that a redeem does except for the change of a voucher, and if it gets no answer, redeems get none either.
 */
export class Canary implements Closable {
  readonly #ctx: Deps;
  readonly #closing = new AbortController();
  readonly #silentMs: number[];
  readonly #pauseMs: number;
  /** How long at least one shard has answered in time. At first, no other counts as silent: it may be recovering. */
  #answeringMs = 0;
  #times: { at: number; ms: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(ctx: Deps) {
    const [shards] = ctx.config.queueShards;
    this.#ctx = ctx;
    this.#silentMs = Array.from({ length: shards }, () => 0);
    this.#pauseMs = Math.max(EVERY_MS, shards * APART_MS);
  }

  /** Begins to send canaries. Before that, no shard counts as silent. */
  start(): void {
    this.#timer = setInterval(() => {
      for (const shard of this.#silentMs.keys()) this.#silentMs[shard] = (this.#silentMs[shard] ?? 0) + STEP_MS;
      this.#answeringMs = Math.min(...this.#silentMs) < FRESH_MS ? this.#answeringMs + STEP_MS : 0;
    }, STEP_MS).unref();
    for (const shard of this.#silentMs.keys()) void this.#ask(shard);
  }

  read(): CanaryState {
    const since = performance.now() - LATENCY_SPAN_MS;
    this.#times = this.#times.filter(({ at }) => at >= since);
    const times = this.#times.map(({ ms }) => ms).toSorted((a, b) => a - b);
    const limitMs = this.#answeringMs < FRESH_MS ? Number.POSITIVE_INFINITY : Math.max(SILENT_MS, 3 * this.#pauseMs);
    return {
      silentMs: Math.min(...this.#silentMs),
      shards: [...this.#silentMs],
      silentShards: [...this.#silentMs.entries()].flatMap(([shard, ms]) => (ms >= limitMs ? [shard] : [])),
      latencyMs: { p50: percentileOf(times, 0.5), p99: percentileOf(times, 0.99) },
    };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#closing.abort();
  }

  async #ask(shard: number): Promise<void> {
    const { signal } = this.#closing;
    const voucherId = keyOf(shard, this.#silentMs.length);
    // Each shard begins after a different pause, so that the shards are not all asked at once.
    await pause(shard * APART_MS, signal);
    while (!signal.aborted) {
      const askedAt = performance.now();
      const isAnswered = await this.#send(voucherId);
      const ms = performance.now() - askedAt;
      if (isAnswered) {
        this.#silentMs[shard] = 0;
        this.#times.push({ at: askedAt, ms });
      }
      await pause(isAnswered ? this.#pauseMs - Math.min(ms, this.#pauseMs) : AGAIN_MS, signal);
    }
  }

  /**
   * Whether a worker has answered a canary, if only with an error: workers of earlier releases cannot read canaries.
   */
  async #send(voucherId: string): Promise<boolean> {
    const { redeemQueue, process, config } = this.#ctx;
    const job: CanaryJob = { voucherId, organizationId: "canary", processId: process.id };
    const waitMs = Math.min(config.redeemWaitMs, WAIT_MAX_MS);
    const result = await redeemQueue.addAndWait(`canary-${crypto.randomUUID()}`, job, waitMs, { removeOnFail: true });
    if (result.kind === "reply") return result.reply.kind === "canary";
    return result.cause instanceof Error && result.cause.message === UNREADABLE_JOB;
  }
}

const pause = (ms: number, signal: AbortSignal) => sleep(ms, undefined, { ref: false, signal }).catch(() => undefined);

/** A key of a job that maps to the given shard. */
function keyOf(shard: number, count: number): string {
  for (let number = 0; ; number++) if (shardOf(`canary-${number}`, count) === shard) return `canary-${number}`;
}
