import { once } from "node:events";
import { Cluster, type ClusterOptions, Redis, type RedisOptions, ReplyError } from "ioredis";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/batcher.ts";
import { namesCluster, parseRedisUrl } from "./addresses.ts";
import { logErrors } from "./log-errors.ts";

/** A connection to one Redis server, or the connections to a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/** Reconnects quickly at first and then every second, for ever. */
const retryStrategy = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) + Math.random() * 100;

const isReadOnly = (error: Error) => error.message.includes("READONLY");

/** Reconnects when the server has become a read-only replica, and then sends the refused command again. */
const reconnecting = {
  connectTimeout: 2_000,
  reconnectOnError: (error: Error): 2 | false => (isReadOnly(error) ? 2 : false),
} satisfies RedisOptions;

/**
 * If commands wait and nothing arrives for this long, the connection is closed. BullMQ's longest blocking command takes
 * 10 s. Milliseconds.
 */
const SILENT_MS = 12_000;
/** Maximum wait for the response to a command of a fail-fast connection. Milliseconds. */
const FAIL_FAST_MS = 1_500;
/** How often a subscriber checks that its server answers. It sends no other commands. Milliseconds. */
const PING_EVERY_MS = 2_000;
/** If the server does not answer for this long, a subscriber's connection is closed. Milliseconds. */
const SUBSCRIBER_SILENT_MS = 3_000;

/** How many times a command is sent to a cluster again: 100 ms after a node was lost, or 200 ms after TRYAGAIN. */
const REDIRECTIONS_FAIL_FAST = 8;
/** Patient connections send a command again until the cluster responds. */
const REDIRECTIONS_PATIENT = Number.MAX_SAFE_INTEGER;

/** Time between routine reads of a cluster's slot map. A lost node or moved slot causes a read too. Milliseconds. */
const SLOTS_EVERY_MS = 30_000;

/**
 * A connection for commands whose callers wait. A command fails at once while Redis is down, and after `commandMaxMs`
 * without a response. After twice that time, the connection is closed. Commands are never kept to be sent later. If a
 * server is read-only, the command fails with the server's own message.
 */
export function openFailFast(redisUrl: string, name: string, log: Logger, commandMaxMs = FAIL_FAST_MS): RedisClient {
  return open(
    redisUrl,
    log,
    { enableOfflineQueue: false, maxRedirections: REDIRECTIONS_FAIL_FAST },
    {
      connectionName: name,
      maxRetriesPerRequest: 0,
      commandTimeout: commandMaxMs,
      socketTimeout: 2 * commandMaxMs,
      reconnectOnError: (error) => isReadOnly(error),
    },
  );
}

/** A connection that waits for Redis without limit, for workers. The caller closes it. */
export function openPatient(redisUrl: string, name: string, log: Logger): RedisClient {
  return open(redisUrl, log, { enableOfflineQueue: true, maxRedirections: REDIRECTIONS_PATIENT }, patient(name));
}

/**
 * A connection for subscriptions to sharded channels. The caller subscribes at each `ready` event, and closes the
 * connection. ioredis must not repeat subscriptions itself, because that would cause an unhandled rejection if the
 * connection is closed meanwhile. If the server vanishes, the connection is replaced within six seconds. In a cluster,
 * ioredis also replaces it when the slot map shows another node.
 */
export function openSubscriber(redisUrl: string, name: string, log: Logger): RedisClient {
  const cluster = { enableOfflineQueue: true, maxRedirections: REDIRECTIONS_PATIENT, shardedSubscribers: true };
  const options = { ...patient(name), socketTimeout: SUBSCRIBER_SILENT_MS, autoResubscribe: false };
  const redis = open(redisUrl, log, cluster, options);
  if (redis instanceof Redis) {
    const ping = () => void (redis.status === "ready" && redis.ping().catch(() => undefined));
    const timer = setInterval(ping, PING_EVERY_MS).unref();
    redis.once("end", () => clearInterval(timer));
  }
  return redis;
}

const patient = (connectionName: string) =>
  ({ connectionName, maxRetriesPerRequest: null, socketTimeout: SILENT_MS }) satisfies RedisOptions;

function open(redisUrl: string, log: Logger, clusterOptions: ClusterOptions, options: RedisOptions): RedisClient {
  const all = { ...reconnecting, ...options };
  const redis = namesCluster(redisUrl)
    ? openCluster(parseRedisUrl(redisUrl), clusterOptions, all)
    : new Redis(redisUrl, { ...all, retryStrategy, enableOfflineQueue: clusterOptions.enableOfflineQueue });
  if (redis instanceof Redis) redis.on("connect", () => writeOnceATurn(redis.stream));
  logErrors(redis, log.child({ connection: options.connectionName }), "an error of a connection to REDIS_URL");
  return redis;
}

function openCluster(urls: readonly URL[], clusterOptions: ClusterOptions, redisOptions: RedisOptions): Cluster {
  const [{ username, password, protocol }] = urls as [URL];
  const cluster = new Cluster(
    urls.map(({ hostname, port }) => ({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 6379) })),
    {
      ...clusterOptions,
      // No check of readiness: it asks one node of the cluster. If that node is down, ioredis never settles the
      // connection, and BullMQ's worker would wait for ever.
      enableReadyCheck: false,
      // While a slot moves, a script on several of its keys gets TRYAGAIN.
      retryDelayOnTryAgain: 200,
      clusterRetryStrategy: retryStrategy,
      slotsRefreshInterval: SLOTS_EVERY_MS,
      // Resolves names at each connection. ioredis would resolve all names first, and fail while one name has no
      // address. A TLS certificate also needs the name.
      dnsLookup: (address, callback) => callback(null, address),
      redisOptions: {
        ...redisOptions,
        ...(username !== "" && { username: decodeURIComponent(username) }),
        ...(password !== "" && { password: decodeURIComponent(password) }),
        ...(protocol === "rediss:" && { tls: {} }),
      },
    },
  );
  cluster.on("+node", (node: Redis) => node.on("connect", () => writeOnceATurn(node.stream)));
  return cluster;
}

/** The master nodes in a stable order. Empty if the cluster has not been reached yet. */
export function mastersOf(redis: RedisClient): Redis[] {
  if (redis instanceof Redis) return [redis];
  const address = ({ options: { host, port } }: Redis) => `${host}:${port}`;
  return redis.nodes("master").sort((one, other) => address(one).localeCompare(address(other)));
}

/** Resolves once a connection can send commands. @throws Error after `maxMs`. */
export async function untilReady(redis: RedisClient, maxMs: number): Promise<void> {
  if (redis.status !== "ready") await once(redis, "ready", { signal: AbortSignal.timeout(maxMs) });
}

/** The first words of ioredis's own messages for commands that were not sent or got no response. */
const NO_RESPONSE = [
  "Command timed out",
  "Command aborted",
  "Connection is closed",
  "Reached the max retries",
  "Stream isn't writeable",
  "Socket timeout",
  "Cluster isn't ready",
  "Cluster is disconnect",
  "None of startup nodes",
  "Failed to refresh slots cache",
  "Too many Cluster redirections",
];

/** Whether the error shows that Redis is down, starting, too slow or refuses writes. A later command may succeed. */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError)
    return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|OOM|MISCONF)/.test(error.message);
  return NO_RESPONSE.some((message) => error.message.startsWith(message));
}
