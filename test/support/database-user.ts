import { pino } from "pino";
import { DatabaseFence } from "../../src/platform/db/database-fence.ts";
import { openPool } from "../../src/platform/db/pool.ts";
import { openFailFast } from "../../src/platform/redis/connections.ts";
import { shareMemory } from "../../src/platform/servers/share-memory.ts";

const log = pino({ level: "silent" });

export type DatabaseUser = ReturnType<typeof openDatabaseUser>;

/** Opens what a process needs to reach the database. Without Redis, the process remembers only what it saw itself. */
export function openDatabaseUser({ databaseUrl, redisUrl }: { databaseUrl: string; redisUrl?: string | undefined }) {
  const redis = redisUrl === undefined ? null : openFailFast(redisUrl, "test", log);
  const deployment = redis === null ? new DatabaseFence(log) : new DatabaseFence(log, shareMemory(redis));
  const pool = openPool({ databaseUrl, max: 2, applicationName: "test", use: "service", deployment, log });
  void deployment.watchMarks(pool);
  void deployment.watchShared();
  let closed: Promise<void> | null = null;
  /** Returns the reason why the process refuses the server, or null. */
  const refusal = (): Promise<{ state?: string; message: string } | null> =>
    pool.query("SELECT 1").then(
      () => null,
      (error) => error,
    );
  return {
    deployment,
    close() {
      deployment.close();
      closed ??= pool.end().then(() => redis?.disconnect());
      return closed;
    },
    /** Returns whether the server responds, or why the process refuses it. Opens a connection if there is none. */
    asks: async (): Promise<string> => {
      const error = await refusal();
      return error === null ? "ok" : (error.state ?? "lost");
    },
    refusal,
    newest: () => deployment.memory?.newest ?? null,
  };
}
