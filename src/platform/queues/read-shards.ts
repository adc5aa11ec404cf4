import { AppError } from "../api/errors.ts";
import { mastersOf, type RedisClient } from "../redis/connections.ts";
import { measureQueues } from "./measure-queues.ts";
import type { QueueSettings } from "./queue-settings.ts";
import { findShard, listShards, listShardsOf, SHARDS_MAX, type Shard } from "./shards.ts";

/** A division of the queues into a number of shards, and which processes use it. */
export interface Division {
  /** The number of shards. */
  shards: number;
  /** The number of API processes that add jobs to these shards. */
  apis: number;
  /** The number of jobs that wait or run in these shards. Null if a server did not respond. */
  jobs: number | null;
  /** Whether any worker serves any of these shards. */
  served: boolean;
  /** Queues and shards that no worker serves, such as `redeem 2/6`. Excludes queues that may have no worker. */
  unserved: string[];
}

/** The name of an API process's connections. {@link readDivisions} counts the processes by this name. */
export function nameApiConnection(shards: number): string {
  return shards === 1 ? "api" : `api/${shards}`;
}

/** The API processes and workers that have connections to a master. */
interface Connected {
  /** Number of API processes' connections, by the number of shards of the process. */
  apis: Map<number, number>;
  /** The names of the connections on which workers wait, without their suffixes: see {@link workerName}. */
  workers: Set<string>;
  /** All numbers of shards that the deployment's API processes and workers use. */
  counts: Set<number>;
}

/**
 * Finds every number of shards that a deployment's processes use or have used, from the names of their connections and
 * from BullMQ's keys. The numbers include API processes of other deployments on the same Redis.
 * @throws Error when Redis does not respond.
 */
export async function readDivisions(
  redis: RedisClient,
  deploymentId: string,
  queues: readonly QueueSettings[],
): Promise<Division[]> {
  const connected = await readConnected(redis, deploymentId);
  const counts = Array.from({ length: SHARDS_MAX }, (_, index) => index + 1);
  const used = await Promise.all(
    counts.map(async (count) => {
      if (connected.some((master) => master.counts.has(count))) return true;
      // BullMQ writes the key `meta` when a queue with this number of shards is opened.
      return (await redis.exists(`${findShard(deploymentId, 0, count).prefix}:redeem:meta`)) === 1;
    }),
  );
  const found = counts.filter((_, index) => used[index]);
  return Promise.all(found.map((count) => readDivision(redis, deploymentId, queues, count, connected)));
}

/** Whether a worker waits for jobs of a queue, in any of these numbers of shards. @throws Error without an answer. */
export async function hasWorker(
  redis: RedisClient,
  deploymentId: string,
  queue: string,
  counts: readonly number[],
): Promise<boolean> {
  const connected = await readConnected(redis, deploymentId);
  const names = counts.flatMap((count) => listShards(deploymentId, count)).map((shard) => workerName(queue, shard));
  return names.some((name) => connected.some(({ workers }) => workers.has(name)));
}

/** Reads the connections to each master. */
async function readConnected(redis: RedisClient, deploymentId: string): Promise<Connected[]> {
  const lists = await Promise.all(mastersOf(redis).map((master) => master.client("LIST").catch(refuseList)));
  const ofDeployment = new RegExp(`^\\{pva:${deploymentId}:\\d+/(\\d+):`);
  return lists.map((list) => {
    const [apis, workers, counts] = [new Map<number, number>(), new Set<string>(), new Set<number>()];
    for (const [, name = ""] of String(list).matchAll(/ name=(\S+)/g)) {
      const ofApi = /^api(?:\/(\d+))?$/.exec(name);
      const count = Number(ofApi === null ? ofDeployment.exec(name)?.[1] : (ofApi[1] ?? 1));
      if (ofApi !== null) apis.set(count, (apis.get(count) ?? 0) + 1);
      if (!Number.isNaN(count)) counts.add(count);
      const [worker] = /^\{.*?:w:/.exec(name) ?? [];
      if (worker !== undefined) workers.add(worker);
    }
    return { apis, workers, counts };
  });
}

function refuseList(error: Error): never {
  if (!/^(NOPERM|ERR unknown)/.test(error.message)) throw error;
  throw new AppError(
    "unavailable",
    "The user of REDIS_URL may not run CLIENT LIST, which shows the processes that use the queues. Nothing else " +
      "needs it. To permit it, run: ACL SETUSER … +client|list",
    { cause: error },
  );
}

async function readDivision(
  redis: RedisClient,
  deploymentId: string,
  queues: readonly QueueSettings[],
  count: number,
  connected: readonly Connected[],
): Promise<Division> {
  const shards = queues.flatMap((definition) =>
    listShardsOf(definition, deploymentId, [count]).map((shard) => ({
      name: `${definition.name} ${shard.name}`,
      isOptional: definition.needs !== undefined,
      served: connected.some(({ workers }) => workers.has(workerName(definition.name, shard))),
    })),
  );
  const backlog = (await measureQueues(redis, deploymentId, { queueShards: [count], queues })).map(
    ({ queues }) => queues,
  );
  const jobs = backlog
    .flatMap((queues) => queues ?? [])
    .reduce((sum, { waiting, active }) => sum + waiting + active, 0);
  return {
    shards: count,
    // Takes the maximum over the masters instead of the sum, because each process has a connection to every master.
    apis: Math.max(0, ...connected.map(({ apis }) => apis.get(count) ?? 0)),
    jobs: backlog.includes(null) ? null : jobs,
    served: shards.some(({ served }) => served),
    unserved: shards.filter(({ served, isOptional }) => !served && !isOptional).map(({ name }) => name),
  };
}

/** BullMQ's name for the connection on which a worker waits for jobs, without the worker's own name at the end. */
function workerName(queue: string, { prefix }: Shard): string {
  return `${prefix}:${Buffer.from(queue).toString("base64")}:w:`;
}
