import type { Redis } from "ioredis";
import { PREFIX, type RedeemJob } from "../../src/queues/catalog.ts";
import type { TestPartner } from "./supply.ts";

/** A redeem job as the API would make it now, with a minute to run. */
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
    ...fields,
  };
}

/** An id for a job, made as the API makes it. */
export function newAttempt(voucherId: string): string {
  return `${voucherId}-${crypto.randomUUID()}`;
}

/** Jobs of a queue that are waiting or running, counted at one moment: a job that goes from one list to the other is not missed. */
export async function countJobs(redis: Redis, queue: string): Promise<number> {
  const lists = await redis.multi().llen(`${PREFIX}:${queue}:wait`).llen(`${PREFIX}:${queue}:active`).exec();
  return (lists ?? []).reduce((sum, [, length]) => sum + Number(length), 0);
}
