import { afterAll, beforeAll, expect, it } from "vitest";
import { lockReferences } from "../../src/db/redemptions.ts";
import { inTransaction } from "../../src/db/transaction.ts";
import { workerOptions } from "../../src/open-worker-service.ts";
import { redeemQueue } from "../../src/queues/catalog.ts";
import { findShard, shardOf } from "../../src/queues/shards.ts";
import { type RunningWorker, startWorker } from "../../src/queues/worker.ts";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { makeGate } from "../support/gate.ts";
import { type ClusterNode, startRedisCluster, type TestCluster } from "../support/redis-cluster.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import {
  endService,
  openWorkerContext,
  startApi,
  startWorkers,
  testConfig,
  type WorkerContext,
} from "../support/service.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { SHARDS, slotOfShard } from "./load.ts";

// A replica is promoted that has missed the start of a job, whose worker is dead. Redis then says that no worker has begun.

let cluster: TestCluster;
let servers: TestServers;
let env: Record<string, string>;
let ctx: WorkerContext;
let till: PartnerClient;
let partner: TestPartner;
let vouchers: { id: string; code: string }[];

beforeAll(async () => {
  [cluster, servers] = await Promise.all([startRedisCluster(), openTestServers()]);
  env = { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS), REDEEM_WAIT_MS: "15000" };
  const api = await startApi(servers, env);
  ctx = openWorkerContext(testConfig(servers, env));
  servers.onClose(() => ctx.close());
  await ctx.deployment.ready();
  partner = await makePartner(servers.db);
  till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  // So many that each shard has one.
  vouchers = await issueVouchers(servers.db, partner, 200);
});

afterAll(async () => {
  await endService(servers);
  await cluster.close();
});

const inShard = (shard: number) =>
  vouchers.find(({ id }) => shardOf(id, SHARDS) === shard) as { id: string; code: string };

async function replicaOf(master: ClusterNode): Promise<ClusterNode> {
  const infos = await Promise.all(cluster.nodes.map(({ client }) => client.info("replication")));
  return cluster.nodes.find((_, index) => infos[index]?.includes(`master_port:${master.port}`)) as ClusterNode;
}

/** Redeems a voucher of a shard whose master dies after a worker has started the job, and before the replica knows. */
async function redeemAcrossFailover(
  shard: number,
  work: (jobId: string, data: unknown) => Promise<void>,
): Promise<Reply> {
  const { id, code } = inShard(shard);
  const { prefix } = findShard(servers.deploymentId, shard, SHARDS);
  const slot = slotOfShard(servers, shard);
  const master = await cluster.masterOf(slot);
  const replica = await replicaOf(master);
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
    // The evidence in Redis is wrong.
    expect(await replica.client.hexists(`${prefix}:redeem:${jobId}`, "ats")).toBe(0);
    expect(await replica.client.lpos(`${prefix}:redeem:wait`, jobId)).toBe(0);
    return await asked;
  } finally {
    never.open();
    await worker.close();
    await master.start();
  }
}

it("a promoted replica that missed the start of a redeem job never makes the API answer that nothing was redeemed when the dead worker had committed", async () => {
  const reply = await redeemAcrossFailover(0, async (jobId, data) => {
    await runRedeemJob(ctx, jobId, data as never);
  });
  expect(reply).toMatchObject({ status: 200, body: { redeemed: true, voucherInstanceId: inShard(0).id } });
});

it("a promoted replica that missed the start of a redeem job never makes it answer that while the worker's transaction is open; a repetition gets the result", async () => {
  const { id, code } = inShard(5);
  const ref = { organizationId: partner.organizationId, externalRef: `order-${id}` };
  const reply = await inTransaction(servers.db, async (outside) => {
    await lockReferences(outside, [{ ...ref, seenEnd: 0, generation: 2 }]);
    return redeemAcrossFailover(5, async () => undefined);
  });
  expect(reply).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
  await startWorkers(servers, env);
  const repeated = await till.redeem({ code, externalRef: `order-${id}` });
  expect(repeated).toMatchObject({ status: 200, body: { redeemed: true, alreadyConfirmed: false } });
});
