import { mastersOf, type RedisClient } from "../redis/connections.ts";
import { QUEUES, type QueueName } from "./catalog.ts";
import { measureQueues } from "./measure-queues.ts";
import { findShard, listShards, listShardsOf, SHARDS_MAX, type Shard } from "./shards.ts";

/** A division of the queues into a number of shards, and the processes that use it. */
export interface Division {
  /** The number of shards. */
  shards: number;
  /** API processes that add jobs to it. */
  apis: number;
  /** Jobs that wait or run in it. Null if a server did not respond. */
  jobs: number | null;
  /** Whether a worker serves any of its shards. */
  served: boolean;
  /** Queues and shards that no worker serves, such as `redeem 2/6`, except queues that may have no worker. */
  unserved: string[];
}

/** The name of an API process's connections. {@link readDivisions} counts the processes by this name. */
export function nameApiConnection(shards: number): string {
  return shards === 1 ? "api" : `api/${shards}`;
}

/**
 * Finds every number of shards that a deployment's processes use or have used, from the names of their connections and from BullMQ's keys.
 * API processes of another deployment on the same Redis are counted too. @throws Error when Redis does not respond.
 */
export async function readDivisions(redis: RedisClient, deploymentId: string): Promise<Division[]> {
  const names = await readConnectionNames(redis);
  const counts = Array.from({ length: SHARDS_MAX }, (_, index) => index + 1);
  const usesDivision = (name: string, count: number) =>
    name === nameApiConnection(count) || new RegExp(`^\\{pva:${deploymentId}:\\d+/${count}:`).test(name);
  const used = await Promise.all(
    counts.map(async (count) => {
      const { prefix } = findShard(deploymentId, 0, count);
      // BullMQ writes `meta` when a queue is first opened.
      return (
        (await redis.exists(`${prefix}:redeem:meta`)) === 1 || names.flat().some((name) => usesDivision(name, count))
      );
    }),
  );
  const found = counts.filter((_, index) => used[index]);
  return Promise.all(found.map((count) => readDivision(redis, deploymentId, count, names)));
}

/** Whether a worker waits for jobs of a queue, in one of these numbers of shards. @throws Error when Redis does not respond. */
export async function hasWorker(
  redis: RedisClient,
  deploymentId: string,
  queue: QueueName,
  counts: readonly number[],
): Promise<boolean> {
  const names = (await readConnectionNames(redis)).flat();
  const workers = counts.flatMap((count) => listShards(deploymentId, count)).map((shard) => workerName(queue, shard));
  return names.some((name) => workers.some((worker) => name.startsWith(worker)));
}

/** The names of the connections to each master. */
async function readConnectionNames(redis: RedisClient): Promise<string[][]> {
  const lists = await Promise.all(mastersOf(redis).map((master) => master.client("LIST")));
  return lists.map((list) => Array.from(String(list).matchAll(/ name=(\S*)/g), ([, name = ""]) => name));
}

/** @param names the names of the connections to each master. */
async function readDivision(
  redis: RedisClient,
  deploymentId: string,
  count: number,
  names: readonly string[][],
): Promise<Division> {
  const shards = QUEUES.flatMap((definition) =>
    listShardsOf(definition, deploymentId, [count]).map((shard) => ({
      name: `${definition.name} ${shard.name}`,
      isOptional: definition.isOptional,
      served: names.flat().some((name) => name.startsWith(workerName(definition.name, shard))),
    })),
  );
  const backlog = (await measureQueues(redis, deploymentId, [count])).map(({ queues }) => queues);
  const jobs = backlog
    .flatMap((queues) => queues ?? [])
    .reduce((sum, { waiting, active }) => sum + waiting + active, 0);
  const apis = names.map((each) => each.filter((name) => name === nameApiConnection(count)).length);
  return {
    shards: count,
    // Each process has a connection to every master, so the masters' numbers are not added.
    apis: Math.max(...apis),
    jobs: backlog.includes(null) ? null : jobs,
    served: shards.some(({ served }) => served),
    unserved: shards.filter(({ served, isOptional }) => !served && !isOptional).map(({ name }) => name),
  };
}

/** How BullMQ names the connection on which a worker waits for jobs. */
function workerName(queue: string, { prefix }: Shard): string {
  return `${prefix}:${Buffer.from(queue).toString("base64")}:w:`;
}
