import type { GivenServers } from "../config.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";

/** The servers to work with: those that were given, and embedded ones for the others. */
export interface ChosenServers {
  databaseUrl: string;
  redisUrl: string;
  /** Whether the database is the embedded one. */
  embedded: boolean;
  /** The embedded default's own secret; null when both servers were given. */
  reservationTokenSecret: string | null;
  /** The embedded default's own token for the queue dashboard; null when both servers were given. */
  opsToken: string | null;
  /** Stops using embedded servers; the last user stops them. */
  release(): Promise<void>;
}

/** Chooses servers, and starts the embedded ones among them. They are no part of a production install and are loaded only here. */
export async function chooseServers(given: GivenServers, say: (line: string) => void): Promise<ChosenServers> {
  const { databaseUrl, redisUrl } = given;
  if (databaseUrl !== null && redisUrl !== null) {
    const none = { reservationTokenSecret: null, opsToken: null };
    return { databaseUrl, redisUrl, embedded: false, ...none, release: async () => undefined };
  }
  const { useLocalServers } = await import("./servers.ts");
  const local = await useLocalServers(
    LOCAL_DIRECTORY,
    { postgres: databaseUrl === null, redis: redisUrl === null },
    say,
  );
  return {
    databaseUrl: databaseUrl ?? local.databaseUrl,
    redisUrl: redisUrl ?? local.redisUrl,
    embedded: databaseUrl === null,
    reservationTokenSecret: local.reservationTokenSecret,
    opsToken: local.opsToken,
    release: local.release,
  };
}
