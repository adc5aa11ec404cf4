import { once } from "node:events";
import { Cluster, type ClusterOptions, Redis, type RedisOptions, ReplyError } from "ioredis";
import type { Logger } from "pino";
import { writeOnceATurn } from "../batching/batcher.ts";
import { namesCluster, parseRedisUrl } from "./addresses.ts";
import { logErrors } from "./log-errors.ts";

/** A connection to one Redis, or the connections to a Redis Cluster. */
export type RedisClient = Redis | Cluster;

/** Reconnects fast at first and then every second, without end. */
const retryStrategy = (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000) + Math.random() * 100;

const isReadOnly = (error: Error) => error.message.includes("READONLY");

/** Also reconnects when the server has become a read-only replica, and then sends the refused command again. */
const reconnecting = {
  connectTimeout: 2_000,
  reconnectOnError: (error: Error): 2 | false => (isReadOnly(error) ? 2 : false),
} satisfies RedisOptions;

/**
 * A connection is closed when commands wait and nothing arrives for this long. Longer than BullMQ's longest blocking
 * command, which takes 10 s. Milliseconds.
 */
const SILENT_MS = 12_000;
/** Longest wait for the response to a command of a fail-fast connection. Milliseconds. */
const FAIL_FAST_MS = 1_500;
/** How often a subscriber asks whether its server is still there: it sends no other commands. Milliseconds. */
const PING_EVERY_MS = 2_000;
/** A subscriber's connection is closed when its server does not answer for this long. Milliseconds. */
const SUBSCRIBER_SILENT_MS = 3_000;

/**
 * How many times a command is sent again to a cluster: 100 ms after a node was lost, 200 ms after TRYAGAIN while a slot
 * moves.
 */
const REDIRECTIONS_FAIL_FAST = 8;
/** Patient connections send a command until the cluster responds. */
const REDIRECTIONS_PATIENT = Number.MAX_SAFE_INTEGER;

/**
 * Time between routine reads of a cluster's slot map. After the loss of a node or the move of a slot, the map is read
 * at once. Milliseconds.
 */
const SLOTS_EVERY_MS = 30_000;

/**
 * A connection for commands that a caller waits for. A command fails at once while Redis is down, and after
 * `commandMaxMs` while Redis does not respond; after twice that time, the connection is closed. No command is kept to
 * be sent later. A command that a read-only server refuses fails with the server's own message.
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
 * A connection for subscriptions to sharded channels. The caller subscribes at each `ready` event and closes the
 * connection. ioredis does not subscribe again by itself, because that ends in an unhandled rejection if the connection
 * is closed meanwhile. The connection to one server that has vanished is replaced within six seconds; of a cluster,
 * ioredis replaces it when the slot map shows another node.
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
      // The check asks one node of the cluster. If that node is down, ioredis never settles the connection, and
      // BullMQ's worker waits for ever.
      enableReadyCheck: false,
      // A script on several keys gets TRYAGAIN while its slot moves.
      retryDelayOnTryAgain: 200,
      clusterRetryStrategy: retryStrategy,
      slotsRefreshInterval: SLOTS_EVERY_MS,
      // Names are resolved at each connection. ioredis would resolve all of them first, and could not connect while one
      // node's name has no address. A TLS certificate is for the name, too.
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

/** The master nodes in a stable order. Empty for a cluster that has not been reached yet. */
export function mastersOf(redis: RedisClient): Redis[] {
  if (redis instanceof Redis) return [redis];
  const address = ({ options: { host, port } }: Redis) => `${host}:${port}`;
  return redis.nodes("master").sort((one, other) => address(one).localeCompare(address(other)));
}

/** Resolves once a connection can send commands. @throws Error after `maxMs`. */
export async function untilReady(redis: RedisClient, maxMs: number): Promise<void> {
  if (redis.status !== "ready") await once(redis, "ready", { signal: AbortSignal.timeout(maxMs) });
}

/** How ioredis's own messages begin for a command that was not sent or got no response. */
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

/**
 * Whether a command failed because Redis is unreachable, starting, too slow or refuses writes: a later one may succeed.
 */
export function isRedisUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof ReplyError)
    return /^(LOADING|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|OOM|MISCONF)/.test(error.message);
  return NO_RESPONSE.some((message) => error.message.startsWith(message));
}
