import { beforeAll, expect, it } from "vitest";
import { workerOptions } from "../../../src/core/processes/worker-options.ts";
import { lockReferences } from "../../../src/core/redeem/db/redemptions.ts";
import { redeemQueue } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { inTransaction } from "../../../src/platform/db/transaction.ts";
import { findShard, shardOf } from "../../../src/platform/queues/shards.ts";
import { type RunningWorker, startWorker } from "../../../src/platform/queues/worker.ts";
import type { PartnerClient, Reply } from "../../support/client.ts";
import { makeGate } from "../../support/gate.ts";
import { openWorkerContext, startWorkers, testConfig, type WorkerContext } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { SHARDS, slotOfShard, useCluster } from "./load.ts";

// Promotes a replica that does not know yet that a worker has started a job, and kills that worker. Then Redis wrongly
// says that no worker has started the job.

const own = useCluster({ apis: 1, env: { REDEEM_WAIT_MS: "15000" } });
let ctx: WorkerContext;
let till: PartnerClient;
let vouchers: { id: string; code: string }[];

beforeAll(async () => {
  ctx = openWorkerContext(testConfig(own.servers, own.env));
  own.servers.onClose(() => ctx.close());
  await ctx.deployment.ready();
  [till] = own.tills as [PartnerClient];
  vouchers = await issueVouchers(own.servers.db, own.partner, 200);
});

it("a redemption is confirmed although a Redis failover lost that its job had started", async () => {
  const reply = await redeemAcrossFailover(0, async (jobId, data) => {
    await runRedeemJob(ctx, jobId, data as never);
  });
  expect(reply).toMatchObject({ status: 200, body: { redeemed: true, voucherInstanceId: inShard(0).id } });
});

it("a redeem with an open transaction gets redeem_unknown if a failover lost that its job has started", async () => {
  const { id, code } = inShard(5);
  const ref = { organizationId: own.partner.organizationId, externalRef: `order-${id}` };
  const reply = await inTransaction(own.servers.db, async (outside) => {
    await lockReferences(outside, [{ ...ref, seenEnd: 0, generation: 2 }]);
    return redeemAcrossFailover(5, async () => undefined);
  });
  expect(reply).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
  await startWorkers(own.servers, own.env);
  const repeated = await till.redeem({ code, externalRef: `order-${id}` });
  expect(repeated).toMatchObject({ status: 200, body: { redeemed: true, alreadyConfirmed: false } });
});

const inShard = (shard: number) =>
  vouchers.find(({ id }) => shardOf(id, SHARDS) === shard) as { id: string; code: string };

/** Redeems a voucher while its shard fails over. The replica does not know that a worker has started the job. */
async function redeemAcrossFailover(
  shard: number,
  work: (jobId: string, data: unknown) => Promise<void>,
): Promise<Reply> {
  const { cluster, servers } = own;
  const { id, code } = inShard(shard);
  const { prefix } = findShard(servers.deploymentId, shard, SHARDS);
  const slot = slotOfShard(servers, shard);
  const master = await cluster.masterOf(slot);
  const replica = await cluster.replicaOf(master);
  const asked = till.redeem({ code, externalRef: `order-${id}` });
  const jobId = await until(() => master.client.lindex(`${prefix}:redeem:wait`, 0));
  expect(await master.client.wait(1, 5_000)).toBe(1);
  replica.freeze();
  await master.client.call("CLIENT", "KILL", "TYPE", "replica");
  const worked = Promise.withResolvers<void>();
  const never = makeGate();
  const options = { ...workerOptions(ctx, 1), workerShards: [shard] };
  const worker: RunningWorker = startWorker(redeemQueue, options, async (job, data) => {
    await work(job, data).then(worked.resolve, worked.reject);
    await never.pass();
    throw new Error("the worker is dead");
  });
  try {
    await worked.promise;
    expect(await master.client.hexists(`${prefix}:redeem:${jobId}`, "ats")).toBe(1);
    await master.kill();
    replica.thaw();
    await until(async () => (await cluster.masterOf(slot)) === replica);
    // Redis has no attempt of the job, although a worker started it.
    expect(await replica.client.hexists(`${prefix}:redeem:${jobId}`, "ats")).toBe(0);
    expect(await replica.client.lpos(`${prefix}:redeem:wait`, jobId)).toBe(0);
    return await asked;
  } finally {
    never.open();
    await worker.close();
    await master.start();
  }
}
