import type { Redis } from "ioredis";
import type pg from "pg";
import type { RedeemJob } from "../../src/core/redeem/job.ts";
import { findShard, listShards } from "../../src/platform/queues/shards.ts";
import type { TestPartner } from "./supply.ts";

/** Creates a redeem job like the API, with a deadline in one minute, and no known end of the reference. */
export function redeemJob(
  partner: Pick<TestPartner, "organizationId">,
  keyId: string,
  voucherId: string,
  externalRef: string,
  fields: Partial<RedeemJob> = {},
): RedeemJob {
  return {
    voucherId,
    organizationId: partner.organizationId,
    keyId,
    externalRef,
    ticket: null,
    tokenHash: null,
    note: null,
    deadlineMs: Date.now() + 60_000,
    seenEnd: 0,
    generation: 2,
    ...fields,
  };
}

/** Creates a job id like the API. */
export function newAttempt(voucherId: string): string {
  return `${voucherId}-${crypto.randomUUID()}`;
}

/**
 * Counts the waiting and running jobs of a queue, without the canaries of an API, which come at any time. Each shard is
 * counted atomically, so that no job is missed between the two lists.
 */
export async function countJobs(
  servers: { redis: Redis; queuePrefix: string; deploymentId?: string; queueShards?: [number] },
  queue: string,
): Promise<number> {
  const { redis, queuePrefix, deploymentId = "", queueShards: [shards] = [1] } = servers;
  const prefixes = shards === 1 ? [queuePrefix] : listShards(deploymentId, shards).map(({ prefix }) => prefix);
  const lists = await Promise.all(
    prefixes.map((prefix) => {
      const [waiting, running] = [`${prefix}:${queue}:wait`, `${prefix}:${queue}:active`];
      return redis.multi().lrange(waiting, 0, -1).lrange(running, 0, -1).exec();
    }),
  );
  const ids = lists.flatMap((found) => found ?? []).flatMap(([, ids]) => ids as string[]);
  return ids.filter((id) => !id.startsWith("canary-")).length;
}

/** Reads the prefix of a deployment's queue keys. */
export async function readQueuePrefix(db: pg.Pool): Promise<string> {
  const { rows } = await db.query<{ id: string }>("SELECT id FROM deployment");
  return findShard(rows[0]?.id ?? "", 0, 1).prefix;
}
