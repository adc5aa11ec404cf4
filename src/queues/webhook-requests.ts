import type { Queue } from "bullmq";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import type { RedisClient } from "../redis/connections.ts";
import { webhookQueue } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";
import { findShard } from "./shards.ts";

/** Adds webhook jobs without waiting for them. */
export class WebhookRequests {
  readonly #redis: RedisClient;
  readonly #shardCount: number;
  readonly #deployment: DeploymentIdentity;
  readonly #log: Logger;
  #queue: Queue | undefined;

  /** @param redis a fail-fast connection. The caller closes it. */
  constructor(redis: RedisClient, shardCount: number, deployment: DeploymentIdentity, log: Logger) {
    this.#redis = redis;
    this.#shardCount = shardCount;
    this.#deployment = deployment;
    this.#log = log;
  }

  /**
   * Requests a job for each endpoint. An endpoint has at most one running job. If a job is requested while one runs, a single job follows
   * when that one ends. Rejects when Redis is unreachable.
   */
  async add(endpointIds: readonly string[]): Promise<void> {
    if (endpointIds.length === 0) return;
    if (this.#redis.status !== "ready") throw new Error("Redis is not connected");
    const { id, origin } = this.#deployment;
    this.#queue ??= openQueue(webhookQueue, findShard(id, 0, this.#shardCount), this.#redis, this.#log);
    await this.#queue.addBulk(
      endpointIds.map((endpointId) => ({
        name: webhookQueue.name,
        data: { endpointId, origin },
        opts: { deduplication: { id: endpointId, keepLastIfActive: true } },
      })),
    );
  }

  /** Like `add`, but logs a failure instead of rejecting. The sweeper adds the missing jobs later. */
  async tryAdd(endpointIds: readonly string[]): Promise<void> {
    await this.add(endpointIds).catch((error) => {
      this.#log.warn({ err: error }, "webhook jobs could not be added; the sweeper adds them");
    });
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }
}
