import type { Queue } from "bullmq";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import type { RedisClient } from "../redis/connections.ts";
import { sealQueue } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";
import { listShards, shardOf } from "./shards.ts";

/** Adds seal jobs without waiting for them. */
export class SealRequests {
  readonly #redis: RedisClient;
  readonly #shardCount: number;
  readonly #deployment: DeploymentIdentity;
  readonly #log: Logger;
  /** One queue per shard, at the shard's index. Opened by the first `add`. */
  #queues: Queue[] | undefined;

  /** @param redis a fail-fast connection. The caller closes it. */
  constructor(redis: RedisClient, shardCount: number, deployment: DeploymentIdentity, log: Logger) {
    this.#redis = redis;
    this.#shardCount = shardCount;
    this.#deployment = deployment;
    this.#log = log;
  }

  /**
   * Adds a seal job for each voucher for which its shard has room, unless the voucher's job is already waiting or running. Rejects when
   * Redis is unreachable; some of the jobs may then have been added.
   * @returns the number of vouchers for which there was room.
   */
  async add(voucherIds: readonly string[]): Promise<number> {
    if (this.#redis.status !== "ready") throw new Error("Redis is not connected");
    this.#queues ??= listShards(this.#deployment.id, this.#shardCount).map((shard) =>
      openQueue(sealQueue, shard, this.#redis, this.#log),
    );
    const byShard = Map.groupBy(voucherIds, (voucherId) => shardOf(voucherId, this.#shardCount));
    const added = await Promise.allSettled(
      [...byShard].map(([shard, ids]) => this.#addTo((this.#queues as Queue[])[shard] as Queue, ids)),
    );
    const failed = added.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return added.reduce((sum, result) => sum + (result.status === "fulfilled" ? result.value : 0), 0);
  }

  async #addTo(queue: Queue, voucherIds: readonly string[]): Promise<number> {
    const { origin } = this.#deployment;
    const waitingMax = Math.ceil(sealQueue.waitingMax / this.#shardCount);
    const room = Math.max(0, waitingMax - (await queue.getWaitingCount()));
    const accepted = voucherIds.slice(0, room);
    await queue.addBulk(
      accepted.map((voucherId) => ({
        name: sealQueue.name,
        data: { voucherId, origin },
        opts: { jobId: `${voucherId}-${crypto.randomUUID()}`, deduplication: { id: voucherId } },
      })),
    );
    return accepted.length;
  }

  async close(): Promise<void> {
    await Promise.all((this.#queues ?? []).map((queue) => queue.close()));
  }
}
