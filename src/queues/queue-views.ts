import { once } from "node:events";
import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import { QUEUES, queuePrefix } from "./catalog.ts";
import { openFailFast } from "./connections.ts";
import { logErrors } from "./log-errors.ts";

/** Longest wait for Redis at the first use. Milliseconds. */
const CONNECT_MS = 1_500;

/** A queue for the dashboard, and the fields that it may show. */
export interface QueueView {
  queue: Queue;
  shown: { data: readonly string[]; reply: readonly string[] };
}

/** The dashboard's queues, on their own connection, so that they never delay the API. Opening them writes nothing. */
export class QueueViews {
  readonly #redisUrl: string;
  readonly #deployment: DeploymentIdentity;
  readonly #log: Logger;
  #redis: Redis | undefined;
  #views: Promise<QueueView[]> | undefined;

  constructor(redisUrl: string, deployment: DeploymentIdentity, log: Logger) {
    this.#redisUrl = redisUrl;
    this.#deployment = deployment;
    this.#log = log;
  }

  /** The shared views. Rejects when Redis does not answer; the next call tries again. */
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
    const prefix = queuePrefix(this.#deployment.id);
    const redis = openFailFast(this.#redisUrl, "dashboard", this.#log);
    try {
      await once(redis, "ready", { signal: AbortSignal.timeout(CONNECT_MS) });
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    this.#redis = redis;
    return QUEUES.map(({ name, shown }) => ({
      queue: this.#openView(name, prefix, redis),
      shown,
    }));
  }

  #openView(name: string, prefix: string, redis: Redis): Queue {
    // The dashboard must not overwrite the queue's settings in Redis; only producers write them.
    const queue = new Queue(name, {
      prefix,
      connection: redis,
      skipMetasUpdate: true,
    });
    logErrors(queue, this.#log.child({ queue: name }), "queue");
    return queue;
  }
}
