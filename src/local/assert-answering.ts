import pTimeout from "p-timeout";
import pg from "pg";
import type { GivenServers } from "../config.ts";
import { parseRedisUrl } from "../redis/addresses.ts";
import { pingRedis } from "./redis.ts";

/** Longest wait for a server that a variable names. Milliseconds. */
const ANSWER_MAX_MS = 10_000;

/** Asserts that the servers which the environment names answer. @throws Error with one sentence, which names the variable. */
export async function assertAnswering({ databaseUrl, redisUrl }: GivenServers): Promise<void> {
  const redisUrls = redisUrl === null ? [] : parseRedisUrl(redisUrl).map(({ href }) => href);
  await Promise.all([
    databaseUrl !== null && within("DATABASE_URL: Postgres", connectOnce(databaseUrl)),
    redisUrls.length > 0 && within("REDIS_URL: Redis", Promise.any(redisUrls.map(pingRedis))),
  ]);
}

async function connectOnce(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2 * ANSWER_MAX_MS });
  client.on("error", () => undefined);
  await client.connect();
  await client.end();
}

function within(server: string, answer: Promise<unknown>): Promise<unknown> {
  const message = `no answer within ${ANSWER_MAX_MS / 1_000} seconds`;
  return pTimeout(answer, { milliseconds: ANSWER_MAX_MS, message }).catch((error: Error) => {
    const [cause = error] = error instanceof AggregateError ? error.errors : [];
    const reason = (cause.message || cause.code).replace(/\.$/, "");
    throw new Error(`${server} does not accept a connection: ${reason}.`, { cause });
  });
}
