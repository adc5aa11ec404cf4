import { Queue } from "bullmq";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import type { RedisClient } from "../redis/connections.ts";
import { logErrors } from "../redis/log-errors.ts";
import type { QueueSettings } from "./queue-settings.ts";
import { listShardsOf, type Shard } from "./shards.ts";

/** Maximum number of jobs that one Redis script removes. It takes some 10 ms. */
const PORTION = 1_000;

/**
 * Finished jobs of all queues and shards. BullMQ removes old jobs only when another job of the queue ends, so a queue's
 * last jobs would stay.
 */
export class FinishedJobs {
  readonly #redis: RedisClient;
  readonly #deployment: DeploymentIdentity;
  readonly #config: { queueShards: readonly number[]; queues: readonly QueueSettings[] };
  readonly #log: Logger;
  /** Queues by the prefix of their keys. A queue is opened when one of its jobs must be removed. */
  readonly #queues = new Map<string, Queue>();

  /** @param resources `redis` is a fail-fast connection, which the caller closes. */
  constructor(resources: {
    redis: RedisClient;
    deployment: DeploymentIdentity;
    config: { queueShards: readonly number[]; queues: readonly QueueSettings[] };
    log: Logger;
  }) {
    this.#redis = resources.redis;
    this.#deployment = resources.deployment;
    this.#config = resources.config;
    this.#log = resources.log;
  }

  /**
   * Removes the jobs that have been kept for their queue's retention time, and returns their number. Skips shards that
   * do not answer.
   */
  async removeOld(untilMs: number): Promise<number> {
    const { queues, queueShards } = this.#config;
    const sets = queues.flatMap((definition) => {
      const { name, keep, keepFailed } = definition;
      return listShardsOf(definition, this.#deployment.id, queueShards).flatMap((shard) => [
        { name, shard, state: "completed" as const, keptMs: keep.age * 1_000 },
        { name, shard, state: "failed" as const, keptMs: keepFailed.age * 1_000 },
      ]);
    });
    const removed = await Promise.allSettled(sets.map((set) => this.#removeFrom(set, untilMs)));
    return removed.reduce((sum, result) => {
      if (result.status === "rejected") throw result.reason;
      return sum + result.value;
    }, 0);
  }

  async #removeFrom(
    { name, shard, state, keptMs }: { name: string; shard: Shard; state: "completed" | "failed"; keptMs: number },
    untilMs: number,
  ): Promise<number> {
    // Counts first, because BullMQ's script would write an event even if there is no job.
    const finished = await this.#redis.zcard(`${shard.prefix}:${name}:${state}`);
    let count = 0;
    for (
      let removed = PORTION;
      count < finished && removed === PORTION && performance.now() < untilMs;
      count += removed
    )
      removed = (await this.#open(name, shard).clean(keptMs, PORTION, state)).length;
    return count;
  }

  #open(name: string, { prefix }: Shard): Queue {
    const key = `${prefix}:${name}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      // Leaves the queue's settings in Redis alone, because only producers write them.
      queue = new Queue(name, { prefix, connection: this.#redis, skipMetasUpdate: true });
      logErrors(queue, this.#log.child({ queue: name }), "an error of a queue");
      this.#queues.set(key, queue);
    }
    return queue;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
  }
}
