import type { GivenServers } from "../config.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";

/** The servers to use: the configured ones, and embedded ones in place of the others. */
export interface ChosenServers {
  databaseUrl: string;
  redisUrl: string;
  /** Whether the database is the embedded one. */
  embedded: boolean;
  /** The secret for reservation tokens of the embedded servers; null when both servers are configured. */
  reservationTokenSecret: string | null;
  /** The webhook secret of the embedded servers; null when both servers are configured. */
  webhookSecret: string | null;
  /** The dashboard token of the embedded servers; null when both servers are configured. */
  opsToken: string | null;
  /** Ends this process's use of the embedded servers. The last process that uses them stops them. */
  release(): Promise<void>;
}

/** The variables of webhooks for embedded servers: their secret and, outside production, permission to send to private addresses. */
export function webhookEnvOf({ embedded, webhookSecret }: ChosenServers): Record<string, string> {
  return {
    ...(webhookSecret !== null && { WEBHOOK_SECRET: webhookSecret }),
    ...(embedded && process.env.NODE_ENV !== "production" && { WEBHOOK_ALLOW_PRIVATE: "true" }),
  };
}

/**
 * Chooses servers and starts the embedded ones. A production install has no embedded servers, so their code is loaded on demand.
 * @throws Error with a sentence that names the variable of a given server that does not answer.
 */
export async function chooseServers(given: GivenServers, say: (line: string) => void): Promise<ChosenServers> {
  const { databaseUrl, redisUrl } = given;
  if (databaseUrl !== null || redisUrl !== null) {
    const { assertAnswering } = await import("./assert-answering.ts");
    await assertAnswering(given);
  }
  if (databaseUrl !== null && redisUrl !== null) {
    const noSecrets = { reservationTokenSecret: null, webhookSecret: null, opsToken: null };
    return { databaseUrl, redisUrl, embedded: false, ...noSecrets, release: async () => undefined };
  }
  const { useLocalServers } = await import("./servers.ts");
  const local = await useLocalServers(
    LOCAL_DIRECTORY,
    { postgres: databaseUrl === null, redis: redisUrl === null },
    say,
  );
  return {
    ...local,
    databaseUrl: databaseUrl ?? local.databaseUrl,
    redisUrl: redisUrl ?? local.redisUrl,
    embedded: databaseUrl === null,
  };
}
