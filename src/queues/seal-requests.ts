import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { sealQueue } from "./catalog.ts";
import { openQueue } from "./open-queue.ts";

/** Asks for vouchers to be sealed, without waiting for it. */
export class SealRequests {
  readonly #redis: Redis;
  readonly #log: Logger;
  #queue: Queue | undefined;

  /** @param redis a fail-fast connection, which stays the caller's to close. */
  constructor(redis: Redis, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Adds a seal job for each voucher, unless one of these requests is still waiting for it. Rejects when Redis is away. */
  async add(voucherIds: readonly string[]): Promise<void> {
    if (this.#redis.status !== "ready") throw new Error("Redis is not connected");
    this.#queue ??= openQueue(sealQueue, this.#redis, this.#log);
    await this.#queue.addBulk(
      voucherIds.map((voucherId) => ({
        name: sealQueue.name,
        data: { voucherId },
        opts: { jobId: `${voucherId}-${crypto.randomUUID()}`, deduplication: { id: voucherId } },
      })),
    );
  }

  async close(): Promise<void> {
    await this.#queue?.close();
  }
}
