import { once } from "node:events";
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { PREFIX, redeemQueue, sealQueue, sweepQueue } from "./catalog.ts";
import { openFailFast } from "./connections.ts";
import { logErrors } from "./log-errors.ts";

/** Longest wait for Redis when the queues are first looked at. Milliseconds. */
const CONNECT_MS = 1_500;

/** A queue to look at, and what of its jobs may be seen. */
export interface QueueView {
  queue: Queue;
  shown: { data: readonly string[]; reply: readonly string[] };
}

/**
 * All queues, for someone who looks at them: on a connection of their own, so that looking never delays an adding API, and
 * opened by the first look, so that it costs nothing until then. Opening writes nothing into Redis.
 */
export class QueueViews {
  readonly #redisUrl: string;
  readonly #log: Logger;
  #redis: Redis | undefined;
  #views: Promise<QueueView[]> | undefined;

  constructor(redisUrl: string, log: Logger) {
    this.#redisUrl = redisUrl;
    this.#log = log;
  }

  /** The queues; the same ones for everyone. Rejects when Redis does not answer, and tries again the next time. */
  open(): Promise<QueueView[]> {
    this.#views ??= this.#connect().catch((error) => {
      this.#views = undefined;
      throw error;
    });
    return this.#views;
  }

  async close(): Promise<void> {
    const views = await this.#views?.catch(() => []);
    await Promise.all((views ?? []).map(({ queue }) => queue.close()));
    this.#redis?.disconnect();
  }

  async #connect(): Promise<QueueView[]> {
    const redis = openFailFast(this.#redisUrl, "dashboard", this.#log);
    try {
      await once(redis, "ready", { signal: AbortSignal.timeout(CONNECT_MS) });
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    this.#redis = redis;
    return [redeemQueue, sealQueue, sweepQueue].map(({ name, shown }) => ({
      queue: this.#openView(name, redis),
      shown,
    }));
  }

  #openView(name: string, redis: Redis): Queue {
    // Limits of a queue are written by those who add to it.
    const queue = new Queue(name, { prefix: PREFIX, connection: redis, skipMetasUpdate: true });
    logErrors(queue, this.#log.child({ queue: name }), "queue");
    return queue;
  }
}
