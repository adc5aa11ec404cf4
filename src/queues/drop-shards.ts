import { mastersOf, type RedisClient } from "../redis/connections.ts";
import { QUEUES } from "./catalog.ts";
import { listShards } from "./shards.ts";

/** Keys per step of a scan. */
const SCAN_COUNT = 1_000;

/**
 * Deletes the keys of all queues in a division into `count` shards: finished and failed jobs, and those that wait. No process may use the
 * division. Returns the number of keys. @throws Error when Redis does not answer.
 */
export async function dropShards(redis: RedisClient, deploymentId: string, count: number): Promise<number> {
  const patterns = listShards(deploymentId, count).flatMap(({ prefix }) =>
    QUEUES.map(({ name }) => `${prefix}:${name}:`),
  );
  const startsOf = new RegExp(`^(${patterns.map(escapeBraces).join("|")})`);
  let dropped = 0;
  for (const master of mastersOf(redis)) {
    let cursor = "0";
    do {
      const [next, keys] = await master.scan(cursor, "MATCH", `{pva:${deploymentId}*`, "COUNT", SCAN_COUNT);
      // One by one: a node accepts only keys of one slot together.
      const ours = keys.filter((key) => startsOf.test(key));
      await Promise.all(ours.map((key) => master.unlink(key)));
      dropped += ours.length;
      cursor = next;
    } while (cursor !== "0");
  }
  return dropped;
}

function escapeBraces(text: string): string {
  return text.replace(/[{}]/g, "\\$&");
}
