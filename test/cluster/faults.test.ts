import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { slotOf } from "../../src/queues/shards.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { type ClusterNode, startRedisCluster, type TestCluster } from "../support/redis-cluster.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../support/service.ts";
import { makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { during, longestGap, SHARDS, shardsOn, slotOfShard, startLoad } from "./load.ts";

let cluster: TestCluster;
let servers: TestServers;
let apis: TestApi[];
let partner: TestPartner;
let tills: PartnerClient[];

beforeAll(async () => {
  [cluster, servers] = await Promise.all([startRedisCluster(), openTestServers()]);
  const env = { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS) };
  apis = await Promise.all([startApi(servers, env), startApi(servers, env)]);
  await Promise.all([startWorkers(servers, env), startWorkers(servers, env)]);
  partner = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, partner.organizationId);
  tills = apis.map(({ url }) => partnerClient(url, key));
});

beforeEach(async () => {
  await Promise.all(cluster.nodes.map((node) => node.start()));
  await until(async () => (await cluster.masters()).length === 3);
  await until(async () => {
    const states = await Promise.all(cluster.nodes.map(({ client }) => client.info("replication")));
    return states.every((state) => /role:master[\s\S]*connected_slaves:1|master_link_status:up/.test(state));
  }, 60_000);
});

afterAll(async () => {
  await endService(servers);
  await cluster.close();
});

const replyMaster = (api: TestApi): Promise<ClusterNode> => cluster.masterOf(slotOf(api.ctx.redeemQueue.replyChannel));

it("a master that is killed under load costs its shards at most ten seconds, the others nothing, and no redemption is lost or doubled", async () => {
  const master = await cluster.masterOf(slotOfShard(servers, 0));
  const lost = await shardsOn(cluster, servers, master);
  expect(lost).toHaveLength(SHARDS / 3);
  const load = await startLoad(servers, partner, tills);
  await until(() => load.answers.length > 300);
  const killedAt = Date.now();
  await master.kill();
  await sleep(14_000);
  await load.end();
  for (const shard of lost) expect(longestGap(load.answers, shard, killedAt)).toBeLessThan(10_000);
  const others = load.answers.filter(({ shard, status }) => !lost.includes(shard) && status !== 200);
  expect(others).toEqual([]);
  expect(during(load.answers, killedAt + 10_000).filter(({ status }) => status !== 200)).toEqual([]);
  expect(during(load.answers, killedAt + 10_000).length).toBeGreaterThan(100);
});

it("a master that is killed under load delays replies, but no call of another shard gets a 503, when it carries the channel of the replies", async () => {
  const master = await replyMaster(apis[0] as TestApi);
  const lost = await shardsOn(cluster, servers, master);
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => !lost.includes(shard));
  const load = await startLoad(servers, partner, tills.slice(0, 1), { shards });
  await until(() => load.answers.length > 100);
  const killedAt = Date.now();
  await master.kill();
  await sleep(12_000);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  const late = during(load.answers, killedAt + 10_000).map(({ sentAt, answeredAt }) => answeredAt - sentAt);
  // Replies arrive again, so that no call waits for the recheck.
  expect(late.length).toBeGreaterThan(20);
  expect(late.toSorted((one, other) => one - other)[Math.floor(late.length / 2)]).toBeLessThan(900);
});

it("slots that move under load cost at most one call in a thousand, and nothing is lost", async () => {
  const load = await startLoad(servers, partner, tills);
  await until(() => load.answers.length > 500);
  const [from, to] = [await cluster.masterOf(slotOfShard(servers, 1)), await cluster.masterOf(slotOfShard(servers, 4))];
  expect(from).not.toBe(to);
  const slot = slotOfShard(servers, 1);
  const slots = Array.from({ length: 40 }, (_, n) => slot - 20 + n);
  await cluster.moveSlots(slots, to);
  expect(await cluster.masterOf(slot)).toBe(to);
  const movedAt = Date.now();
  await until(() => load.answers.length > 3_000, 90_000);
  await cluster.moveSlots(slots, from);
  await sleep(2_000);
  await load.end();
  const refused = load.answers.filter(({ status }) => status !== 200);
  expect(refused.length).toBeLessThanOrEqual(load.answers.length / 1_000);
  expect(
    during(load.answers, movedAt).filter(({ shard, status }) => shard === 1 && status === 200).length,
  ).toBeGreaterThan(0);
});
