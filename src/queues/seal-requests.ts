import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import { sealQueue } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";

/** Adds seal jobs without waiting for them. */
export class SealRequests {
  readonly #redis: Redis;
  readonly #deployment: DeploymentIdentity;
  readonly #log: Logger;
  #queue: Queue | undefined;

  /** @param redis a fail-fast connection. The caller closes it. */
  constructor(redis: Redis, deployment: DeploymentIdentity, log: Logger) {
    this.#redis = redis;
    this.#deployment = deployment;
    this.#log = log;
  }

  /**
   * Adds a seal job for each voucher, in order, as long as the queue has room, unless one still waits. Rejects when Redis is unreachable.
   * @returns the number of vouchers for which there was room.
   */
  async add(voucherIds: readonly string[]): Promise<number> {
    if (this.#redis.status !== "ready") throw new Error("Redis is not connected");
    this.#queue ??= openQueue(sealQueue, this.#deployment.id, this.#redis, this.#log);
    const { origin } = this.#deployment;
    const room = Math.max(0, sealQueue.waitingMax - (await this.#queue.getWaitingCount()));
    const fitting = voucherIds.slice(0, room);
    await this.#queue.addBulk(
      fitting.map((voucherId) => ({
        name: sealQueue.name,
        data: { voucherId, origin },
        opts: { jobId: `${voucherId}-${crypto.randomUUID()}`, deduplication: { id: voucherId } },
      })),
    );
    return fitting.length;
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }
}
