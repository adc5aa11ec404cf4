import { Redis, type RedisOptions, ReplyError } from "ioredis";
import { explainRefusal } from "../refused-connections.ts";

/** A server of REDIS_URL answers but cannot be used as it is. The message is for an operator. */
export class UnusableRedis extends Error {
  /** Whether the server may become usable without a change of settings. */
  readonly mayPass: boolean;

  constructor(message: string, { mayPass = false, ...options }: ErrorOptions & { mayPass?: boolean } = {}) {
    super(message, options);
    this.mayPass = mayPass;
  }
}

/** `host:port` of an address. */
export const addressOf = (url: URL) => `${url.hostname || "127.0.0.1"}:${url.port || 6379}`;

/**
 * Connects to one server, runs `work` and closes the connection.
 * @param maxMs maximum wait for the connection, and for each response.
 * @throws UnusableRedis when the server's answer is not one of Redis, or when it refuses the user; Error when it does
 * not answer.
 */
export async function connectOnce<T>(
  url: URL,
  maxMs: number,
  work: (redis: Redis) => Promise<T>,
  options: RedisOptions = {},
): Promise<T> {
  const redis = new Redis(url.href, {
    lazyConnect: true,
    connectTimeout: maxMs,
    commandTimeout: maxMs,
    retryStrategy: () => null,
    // Sends only one command at first. A server of another kind answers it and closes the connection. The answer must
    // be read before a further write fails.
    disableClientInfo: true,
    maxRetriesPerRequest: 0,
    ...options,
  });
  // Keeps the first error, because the error of connect() says only that the connection is closed. A refused SELECT
  // does not even reject.
  let reason: Error | undefined;
  redis.on("error", (error) => {
    reason ??= error;
  });
  try {
    await redis.connect();
    if (reason !== undefined) throw reason;
    return await work(redis);
  } catch (error) {
    throw explain(url, reason ?? (error as Error));
  } finally {
    redis.disconnect();
  }
}

/** Why a connection failed: a sentence for operators if waiting does not help, otherwise the error itself. */
function explain(url: URL, error: Error): Error {
  const address = addressOf(url);
  const unusable = (sentence: string) => new UnusableRedis(sentence, { cause: error });
  if (/^Unknown RESP type/.test(error.message)) {
    return unusable(`REDIS_URL names ${address}, where a server of another kind answers. Name a Redis server.`);
  }
  if ((error as NodeJS.ErrnoException).code === "ERR_SSL_WRONG_VERSION_NUMBER") {
    return unusable(`REDIS_URL names ${address}, which does not use TLS. Write redis: instead of rediss:.`);
  }
  const refusal = explainRefusal(`Redis at ${address}`, error);
  if (refusal !== null) return new UnusableRedis(refusal.sentence, { cause: error, mayPass: refusal.mayPass });
  if (!(error instanceof ReplyError)) return error;
  if (/^(NOAUTH|WRONGPASS)/.test(error.message)) {
    return unusable(`Redis at ${address} refuses the user or the password of REDIS_URL.`);
  }
  const database = url.pathname.slice(1);
  if (/SELECT is not allowed in cluster mode/.test(error.message)) {
    return unusable(
      `REDIS_URL names database ${database}, and Redis at ${address} is a cluster, which has only database 0. ` +
        "Leave the number out.",
    );
  }
  if (/DB index is out of range/.test(error.message)) {
    return unusable(
      `REDIS_URL names database ${database}, which Redis at ${address} does not have. Use a lower number, or ` +
        "raise databases in redis.conf.",
    );
  }
  return error;
}
