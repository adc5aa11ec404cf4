import type { BulkJobOptions, Queue } from "bullmq";
import { openQueue, type QueueResources } from "./open-queue.ts";
import { waitingMaxOfShard } from "./queue-settings.ts";
import { listShardsOf, shardOf } from "./shards.ts";

type Requested = Parameters<typeof openQueue>[0] & { shardBy?: string; waitingMax: number };
/** Makes the job for a voucher's or an endpoint's id. */
type JobOf<Data> = (id: string) => { data: Data; opts: BulkJobOptions };

/** Adds jobs without waiting for them. The first `add` opens the queue. */
export class JobRequests<Data> {
  readonly #definition: Requested;
  readonly #resources: QueueResources;
  readonly #jobOf: JobOf<Data>;
  /** One queue per shard, at the shard's index. */
  #queues: Queue[] | undefined;

  constructor(definition: Requested, resources: QueueResources, jobOf: JobOf<Data>) {
    this.#definition = definition;
    this.#resources = resources;
    this.#jobOf = jobOf;
  }

  /**
   * Requests a job for each id, as far as the ids' shards have room. Rejects when Redis is unreachable, perhaps after
   * adding some of the jobs.
   * @returns the number of ids for which there was room.
   */
  async add(ids: readonly string[]): Promise<number> {
    if (ids.length === 0) return 0;
    const { redis, shards, deployment, log } = this.#resources;
    if (redis.status !== "ready") throw new Error("Redis is not connected");
    this.#queues ??= listShardsOf(this.#definition, deployment.id, [shards]).map((shard) =>
      openQueue(this.#definition, shard, redis, log),
    );
    const queues = this.#queues;
    const byQueue = Map.groupBy(ids, (id) => queues[shardOf(id, queues.length)] as Queue);
    const roomMax = waitingMaxOfShard(this.#definition, queues.length);
    const added = await Promise.allSettled(
      [...byQueue].map(([queue, ofShard]) => this.#addTo(queue, ofShard, roomMax)),
    );
    return added.reduce((sum, result) => {
      if (result.status === "rejected") throw result.reason;
      return sum + result.value;
    }, 0);
  }

  /** Like `add`, but logs a failure instead of rejecting. The sweeper adds the missing jobs later. */
  async tryAdd(ids: readonly string[]): Promise<void> {
    await this.add(ids).catch((error) => {
      const { name } = this.#definition;
      this.#resources.log.warn({ err: error }, `${name} jobs could not be added; the sweeper adds them`);
    });
  }

  async #addTo(queue: Queue, ids: readonly string[], roomMax: number): Promise<number> {
    const { serverId: origin } = this.#resources.deployment;
    const room = Math.max(0, roomMax - (await queue.getWaitingCount()));
    const jobs = ids.slice(0, room).map(this.#jobOf);
    await queue.addBulk(jobs.map(({ data, opts }) => ({ name: queue.name, data: { ...data, origin }, opts })));
    return jobs.length;
  }

  async close(): Promise<void> {
    await Promise.all((this.#queues ?? []).map((queue) => queue.close()));
  }
}
