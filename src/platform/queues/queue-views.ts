import { once } from "node:events";
import { Queue } from "bullmq";
import type { Logger } from "pino";
import { nextPiece } from "../batching/fair-slots.ts";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import { openFailFast, type RedisClient } from "../redis/connections.ts";
import { logErrors } from "../redis/log-errors.ts";
import type { QueueDefinition, QueueSettings } from "./queue-settings.ts";
import { listShardsOf, type Shard } from "./shards.ts";

/** Maximum wait for Redis at the first use. Milliseconds. */
const CONNECT_MS = 1_500;

/** Number of views that are opened in one turn of the event loop. This takes some milliseconds. */
const PIECE = 64;

/** The queues, and the addresses of their servers. */
interface Servers {
  redisUrl: string;
  queueShards: readonly number[];
  queues: readonly QueueSettings[];
}

/** A shard of a queue for the dashboard, and the fields that the dashboard may show. */
export interface QueueView {
  queue: Queue;
  shard: Shard;
  settings: QueueSettings;
}

/**
 * The queues as the dashboard reads them. They use a connection of their own, so that they never delay the API. Opening
 * them writes nothing.
 */
export class QueueViews {
  readonly #servers: Servers;
  readonly #deployment: DeploymentIdentity;
  readonly #log: Logger;
  #redis: RedisClient | undefined;
  #views: Promise<QueueView[]> | undefined;

  constructor(servers: Servers, deployment: DeploymentIdentity, log: Logger) {
    this.#servers = servers;
    this.#deployment = deployment;
    this.#log = log;
  }

  /** The shared views. Rejects when Redis does not answer: the next call then tries again. */
  open(): Promise<QueueView[]> {
    this.#views ??= this.#connect().catch((error) => {
      this.#views = undefined;
      throw error;
    });
    return this.#views;
  }

  /** The reply and time of the last completed job in a queue's first shard, or null. Rejects without an answer. */
  async findLastReply<Reply>(
    definition: Pick<QueueDefinition<never, Reply>, "name" | "reply">,
  ): Promise<{ reply: Reply; at: Date } | null> {
    const view = (await this.open()).find(({ queue }) => queue.name === definition.name);
    const [job] = (await view?.queue.getJobs("completed", 0, 0)) ?? [];
    const parsed = definition.reply.safeParse(job?.returnvalue);
    return parsed.success && job?.finishedOn ? { reply: parsed.data, at: new Date(job.finishedOn) } : null;
  }

  async close(): Promise<void> {
    const views = await this.#views?.catch(() => []);
    await Promise.all((views ?? []).map(({ queue }) => queue.close()));
    this.#redis?.disconnect();
  }

  async #connect(): Promise<QueueView[]> {
    const { id } = this.#deployment;
    const { redisUrl, queueShards, queues } = this.#servers;
    const redis = openFailFast(redisUrl, "dashboard", this.#log);
    try {
      await once(redis, "ready", { signal: AbortSignal.timeout(CONNECT_MS) });
    } catch (error) {
      redis.disconnect();
      throw error;
    }
    this.#redis = redis;
    const views: QueueView[] = [];
    for (const definition of queues) {
      for (const shard of listShardsOf(definition, id, queueShards)) {
        if (views.length % PIECE === 0) await nextPiece();
        views.push({ queue: this.#openView(definition.name, shard.prefix, redis), shard, settings: definition });
      }
    }
    return views;
  }

  #openView(name: string, prefix: string, redis: RedisClient): Queue {
    // Leaves the queue's settings in Redis alone, because only producers write them.
    const queue = new Queue(name, { prefix, connection: redis, skipMetasUpdate: true });
    logErrors(queue, this.#log.child({ queue: name }), "an error of a queue");
    return queue;
  }
}
