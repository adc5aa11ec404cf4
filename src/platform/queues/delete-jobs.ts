import { mastersOf, type RedisClient } from "../redis/connections.ts";
import { listShards } from "./shards.ts";

/** Number of keys per step of a scan. */
const SCAN_COUNT = 1_000;

/**
 * Deletes all jobs of the queues, as they are divided into `count` shards. No process may use these shards. Returns the
 * number of deleted keys.
 */
export async function deleteJobs(
  redis: RedisClient,
  deploymentId: string,
  queues: readonly { name: string }[],
  count: number,
): Promise<number> {
  const prefixes = listShards(deploymentId, count).flatMap(({ prefix }) =>
    queues.map(({ name }) => `${prefix}:${name}:`),
  );
  const queueKey = new RegExp(`^(${prefixes.map(escapeBraces).join("|")})`);
  let dropped = 0;
  for (const master of mastersOf(redis)) {
    let cursor = "0";
    do {
      const [next, keys] = await master.scan(cursor, "MATCH", `{pva:${deploymentId}*`, "COUNT", SCAN_COUNT);
      // Deletes one key per command, because a node of a cluster refuses a command with keys of several slots.
      const queueKeys = keys.filter((key) => queueKey.test(key));
      await Promise.all(queueKeys.map((key) => master.unlink(key)));
      dropped += queueKeys.length;
      cursor = next;
    } while (cursor !== "0");
  }
  return dropped;
}

function escapeBraces(text: string): string {
  return text.replace(/[{}]/g, "\\$&");
}
