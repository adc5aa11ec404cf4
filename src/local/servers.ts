import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join, resolve } from "node:path";
import pTimeout from "p-timeout";
import type { GivenServers } from "../platform/config.ts";
import { Client, RefusedConnection } from "../platform/db/client.ts";
import { parseRedisUrl } from "../platform/redis/addresses.ts";
import { UnusableRedis } from "../platform/redis/connect-once.ts";
import { LOCAL_DIRECTORY, privateReceivers, readSaved, type SavedServers, save } from "./directory.ts";
import { freePort } from "./ports.ts";
import { findEmbeddedPostgres, type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "./postgres.ts";
import { type LocalRedis, pingRedis, redisUrl, startRedis, stopRedis } from "./redis.ts";
import { addUser, findUsers, lockUsers, removeUser } from "./server-users.ts";

/** Maximum wait for a server that a variable names. Milliseconds. */
const ANSWER_MAX_MS = 10_000;

/** The servers that the service uses. */
export interface ServiceServers {
  databaseUrl: string;
  redisUrl: string;
  /** Whether the database is the embedded one. */
  embedded: boolean;
  /** The secrets of the embedded servers. Empty if both servers are configured. */
  secrets: Partial<Pick<SavedServers, "reservationTokenSecret" | "webhookSecret" | "opsToken">>;
}

/** The servers to use: the configured servers, and an embedded server for each server that is not configured. */
export interface ChosenServers extends ServiceServers {
  /** Ends this process's use of the embedded servers. If no other process uses them, also stops them. */
  release(): Promise<void>;
  /** Calls back once, with a sentence, when an embedded server has ended. */
  watch(onEnd: (sentence: string) => void): void;
}

/** The webhook variables of embedded servers: the secret and, outside production, WEBHOOK_ALLOW_PRIVATE. */
export function webhookEnvOf({ embedded, secrets }: ServiceServers, given: NodeJS.ProcessEnv): Record<string, string> {
  return {
    ...(secrets.webhookSecret && { WEBHOOK_SECRET: secrets.webhookSecret }),
    ...(embedded && privateReceivers(given)),
  };
}

/**
 * Chooses the servers, and starts the embedded servers if they are not running. Each process that uses the embedded
 * servers writes a file named by its process id. The file of a killed process does not count. If an embedded server
 * does not start, stops both, unless another process uses them.
 * @throws Error when a given server does not answer. The message names its variable.
 */
export async function chooseServers(given: GivenServers, say: (line: string) => void): Promise<ChosenServers> {
  await assertAnswering(given);
  const { databaseUrl, redisUrl: givenRedisUrl } = given;
  const embedded = databaseUrl === null;
  if (!embedded && givenRedisUrl !== null) {
    return {
      databaseUrl,
      redisUrl: givenRedisUrl,
      embedded,
      secrets: {},
      release: async () => undefined,
      watch: () => undefined,
    };
  }
  if (embedded) findEmbeddedPostgres();
  const root = resolve(LOCAL_DIRECTORY);
  if (embedded && readSaved(root).lastOwn?.includes("DATABASE_URL")) {
    const state = existsSync(join(root, "postgres")) ? "has data of its own" : "is new and empty";
    say(
      `The last start used the database of DATABASE_URL. Without it, this uses the one in ${LOCAL_DIRECTORY}, ` +
        `which ${state}.`,
    );
  }
  const saved = await lockUsers(root, async () => {
    const started = await startServers(root, given, say);
    addUser(root);
    return started;
  });
  const { postgres, redis } = serversOf(root, saved);
  return {
    databaseUrl: databaseUrl ?? postgresUrl(postgres),
    redisUrl: givenRedisUrl ?? redisUrl(redis),
    embedded,
    secrets: saved,
    watch: (onEnd) =>
      watchPorts(
        {
          ...(embedded && {
            [postgres.port]: `Postgres has ended. Its log is ${join(LOCAL_DIRECTORY, "postgres/server.log")}.`,
          }),
          ...(givenRedisUrl === null && {
            [redis.port]: `Redis has ended. Its log is ${join(LOCAL_DIRECTORY, "redis/server.log")}.`,
          }),
        },
        onEnd,
      ),
    release: () =>
      lockUsers(root, async () => {
        removeUser(root);
        if (findUsers(root).length === 0) await stopServers({ postgres, redis });
      }),
  };
}

/**
 * Stops the servers of the last run of a directory, which still run if all processes of that run were killed. Call it
 * under {@link lockUsers}, and only while no process uses the servers.
 */
export async function stopLastServers(root: string): Promise<void> {
  const { postgres, redis } = serversOf(root, readSaved(root) as SavedServers);
  // Without a directory there is no server to stop. A production install has no pg_ctl, which stopPostgres would run.
  if (existsSync(postgres.directory)) await stopPostgres(postgres);
  if (redis.port !== undefined) await stopRedis(redis);
}

/** The servers of a running `npm start`: those that the operator gave, and the embedded servers that it started. */
export function findRunningServers({ databaseUrl, redisUrl: givenRedisUrl }: GivenServers): ServiceServers {
  const root = resolve(LOCAL_DIRECTORY);
  const saved = readSaved(root) as SavedServers;
  const { postgres, redis } = serversOf(root, saved);
  return {
    databaseUrl: databaseUrl ?? postgresUrl(postgres),
    redisUrl: givenRedisUrl ?? redisUrl(redis),
    embedded: databaseUrl === null,
    secrets: saved,
  };
}

/** Asserts that the servers of the environment answer. @throws Error with a sentence that names the variable. */
export async function assertAnswering({ databaseUrl, redisUrl }: GivenServers): Promise<void> {
  const redisUrls = redisUrl === null ? [] : parseRedisUrl(redisUrl).map(({ href }) => href);
  await Promise.all([
    databaseUrl !== null && within("DATABASE_URL: Postgres", connectOnce(databaseUrl)),
    redisUrls.length > 0 && within("REDIS_URL: Redis", Promise.any(redisUrls.map(pingRedis))),
  ]);
}

async function connectOnce(connectionString: string): Promise<void> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 2 * ANSWER_MAX_MS });
  client.on("error", () => undefined);
  await client.connect();
  await client.end();
}

function within(server: string, answer: Promise<unknown>): Promise<unknown> {
  const message = `no answer within ${ANSWER_MAX_MS / 1_000} seconds`;
  return pTimeout(answer, { milliseconds: ANSWER_MAX_MS, message }).catch((error: Error) => {
    const [cause = error] = error instanceof AggregateError ? error.errors : [];
    if (cause instanceof UnusableRedis || cause instanceof RefusedConnection) throw cause;
    const reason = (cause.message || cause.code).replace(/\.$/, "");
    throw new Error(`${server} does not accept a connection: ${reason}.`, { cause });
  });
}

function serversOf(root: string, saved: SavedServers): { postgres: LocalPostgres; redis: LocalRedis } {
  return {
    postgres: { directory: join(root, "postgres"), port: saved.postgresPort, password: saved.postgresPassword },
    redis: { directory: join(root, "redis"), port: saved.redisPort, password: saved.redisPassword },
  };
}

async function stopServers({ postgres, redis }: ReturnType<typeof serversOf>): Promise<void> {
  await Promise.all([stopPostgres(postgres), stopRedis(redis)]);
}

/** Starts an embedded server for each server that is not given. */
async function startServers(root: string, given: GivenServers, say: (line: string) => void): Promise<SavedServers> {
  const before = readSaved(root);
  const inUse = before.postgresPort !== undefined && findUsers(root).length > 0;
  const saved: SavedServers = {
    postgresPassword: randomBytes(24).toString("hex"),
    reservationTokenSecret: randomBytes(32).toString("hex"),
    webhookSecret: randomBytes(32).toString("hex"),
    opsToken: randomBytes(16).toString("hex"),
    ...before,
    // Chooses new ports if no process uses the servers, because another program may have taken the ports of the last
    // run.
    postgresPort: (inUse && before.postgresPort) || (await freePort()),
    redisPort: (inUse && before.redisPort) || (await freePort()),
    redisPassword: inUse ? before.redisPassword : (before.redisPassword ?? randomBytes(24).toString("hex")),
  };
  if (!inUse) await stopLastServers(root);
  save(root, saved);
  const servers = serversOf(root, saved);
  const started = await Promise.allSettled([
    given.databaseUrl === null && startPostgres(servers.postgres),
    given.redisUrl === null && startRedis(servers.redis, say),
  ]);
  const failed = started.find((outcome) => outcome.status === "rejected");
  if (failed === undefined) return saved;
  if (!inUse) await stopServers(servers);
  throw failed.reason;
}

/** How often a process checks that the embedded servers run. Milliseconds. */
const WATCH_MS = 1_000;

/** Calls back once when a port on loopback refuses connections, with that port's sentence. */
function watchPorts(sentences: Record<number, string>, onEnd: (sentence: string) => void): void {
  const watch = setInterval(async () => {
    for (const [port, sentence] of Object.entries(sentences)) {
      if (await listens(Number(port))) continue;
      clearInterval(watch);
      return onEnd(sentence);
    }
  }, WATCH_MS).unref();
}

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, "127.0.0.1", () => resolve(true));
    probe
      .once("connect", () => probe.destroy())
      .once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED"));
  });
}
