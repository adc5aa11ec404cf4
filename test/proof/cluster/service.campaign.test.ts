import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { CONFIG_PARTS } from "../../../src/open/config-parts.ts";
import { findShard, shardOf } from "../../../src/platform/queues/shards.ts";
import { type PartnerClient, type Reply, send } from "../../support/client.ts";
import { scrape } from "../../support/scrape.ts";
import type { TestApi, TestWorker } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { SHARDS, shardsOn, slotOfShard, useCluster } from "./load.ts";

// Tests that need a cluster. `npm run test:cluster` runs the other tests on a cluster.

const OPS_TOKEN = "operators-of-the-tests";

const own = useCluster({
  apis: 1,
  workers: 1,
  env: { METRICS_PORT: "0", OPS_TOKEN, SWEEP_INTERVAL_MS: "500", WORKER_QUEUES: "redeem,seal,sweep" },
});

it("an API and a worker need 20 Redis clients for six shards on a Redis Cluster", async () => {
  await redeemAll(await issueVouchers(own.servers.db, own.partner, 30));
  // A client connects to a node when it first sends a command there, so the test counts clients and not connections.
  // Connections for subscriptions and for the map of slots have names with a prefix. A client may replace a slow
  // connection before Redis learns that the old one has ended.
  const countClients = async () => {
    const nodes = await Promise.all(own.cluster.nodes.map(({ client }) => client.client("LIST")));
    const names = nodes.map((list) => Array.from(String(list).matchAll(/ name=(\S+)/g), ([, name = ""]) => name));
    if (names.some((ofNode) => new Set(ofNode).size < ofNode.length)) return null;
    return new Set(names.flat().map((name) => name.replace(/^ioredis-cluster\(\w+\):/, ""))).size;
  };
  await until(async () => (await countClients()) === 20);
});

it("each of three Redis masters has two of six shards, and a redeem goes to its voucher's shard", async () => {
  for (const master of await own.cluster.masters()) expect(await shardsOn(own, master)).toHaveLength(SHARDS / 3);
  const vouchers = await issueForEachShard(10);
  const since = Date.now();
  await redeemAll(vouchers);
  const expected = Array.from({ length: SHARDS }, () => 10);
  await until(async () => JSON.stringify(await countCompleted(since)) === JSON.stringify(expected));
});

it("the metrics and the queue dashboard show all six shards of a Redis Cluster", async () => {
  const [[api], [worker]] = [own.apis as [TestApi], own.workers as [TestWorker]];
  const [report, fetchers] = [await scrape(api.metricsUrl), await scrape(worker.metricsUrl)];
  for (let index = 0; index < SHARDS; index++) {
    const shard = `${index}/${SHARDS}`;
    expect(report.value("voucher_shard_up", { shard })).toBe(1);
    expect(report.value("voucher_queue_jobs", { queue: "redeem", shard, state: "waiting" })).toBe(0);
    for (const queue of ["redeem", "seal"])
      expect(fetchers.value("voucher_queue_fetchers", { queue, shard })).toBeGreaterThan(0);
  }
  expect(fetchers.value("voucher_queue_fetchers", { queue: "sweep", shard: `0/${SHARDS}` })).toBe(1);
  const headers = { authorization: `Basic ${Buffer.from(`ops:${OPS_TOKEN}`).toString("base64")}` };
  const board = await (await fetch(`${api.url}/ops/queues/jobs/api/queues`, { headers })).json();
  const names = (board as { queues: { name: string }[] }).queues.map(({ name }) => name);
  // Two queues have shards. The other queues are in the first shard.
  expect(new Set(names).size).toBe(2 * SHARDS + CONFIG_PARTS.queues.length - 2);
  expect(names).toContain("3/6 redeem");
});

/** Requests /readyz, and asks again after a 503, because a busy machine may once exceed the limit of 1.5 s. */
async function askIsReady(api: TestApi): Promise<Reply> {
  const answer = await send("GET", `${api.url}/readyz`);
  return answer.status === 503 ? send("GET", `${api.url}/readyz`) : answer;
}

it("an API stays ready while one Redis master refuses writes, and /readyz lists that master's shards", async () => {
  const [api] = own.apis as [TestApi];
  const master = await own.cluster.masterOf(slotOfShard(own.servers, 5));
  const names = (await shardsOn(own, master)).map((index) => `${index}/${SHARDS}`);
  const refusal = "a Redis server refuses writes: NOREPLICAS Not enough good replicas to write";
  const what = `Nothing is redeemed in ${names.length === 1 ? "shard" : "shards"} ${names.join(", ")}: ${refusal}`;
  const isTold = async () => (await api.ctx.watch.look()).attention.some((fault) => fault.what === what);
  api.ctx.canary.start();
  await master.client.config("SET", "min-replicas-to-write", "5");
  try {
    await until(async () => {
      const { status, body } = await askIsReady(api);
      expect(status).toBe(200);
      return JSON.stringify(body.silentShards) === JSON.stringify(names);
    });
    await until(isTold);
    const report = await scrape(api.metricsUrl);
    expect(names.map((shard) => report.value("voucher_shard_up", { shard }))).toEqual(names.map(() => 0));
  } finally {
    await master.client.config("SET", "min-replicas-to-write", "0");
  }
  await until(async () => (await send("GET", `${api.url}/readyz`)).body.silentShards === undefined);
  await until(async () => !(await isTold()));
});

it("an API stays ready while a Redis master and its replica are dead, and /readyz lists their shards", async () => {
  const { cluster } = own;
  const [[api], [till]] = [own.apis as [TestApi], own.tills as [PartnerClient]];
  const master = await cluster.masterOf(slotOfShard(own.servers, 5));
  const replica = await cluster.replicaOf(master);
  const lost = await shardsOn(own, master);
  await Promise.all([master.kill(), replica.kill()]);
  const names = lost.map((index) => `${index}/${SHARDS}`);
  await until(async () => {
    const { status, body } = await askIsReady(api);
    expect(status).toBe(200);
    return JSON.stringify(body.silentShards) === JSON.stringify(names);
  });
  const report = await scrape(api.metricsUrl);
  expect(names.map((shard) => report.value("voucher_shard_up", { shard }))).toEqual(names.map(() => 0));
  const vouchers = await issueForEachShard(6);
  const [away, healthy] = [true, false].map((isLost) =>
    vouchers.filter(({ id }) => lost.includes(shardOf(id, SHARDS)) === isLost),
  ) as [IssuedVoucher[], IssuedVoucher[]];
  await redeemAll(healthy);
  const order = { code: away[0]?.code, externalRef: away[0]?.id };
  expect(await till.redeem(order)).toMatchObject({ status: 503, body: { code: "redeem_timeout" } });
  // Longer than two of BullMQ's blocking waits. BullMQ replaces its connections after such a wait.
  await sleep(14_000);
  await Promise.all([master.start(), replica.start()]);
  await untilStarted(async () => (await send("GET", `${api.url}/readyz`)).body.silentShards === undefined);
  // The worker connects to each shard at a different time.
  for (const shard of lost) {
    const { code, id } = away.find((one) => shardOf(one.id, SHARDS) === shard) ?? expect.fail("no voucher of a shard");
    await untilStarted(async () => (await till.redeem({ code, externalRef: id })).status === 200);
  }
  expect(away).toHaveLength(6 * lost.length);
  await redeemAll(away);
});

/** Counts the number of redeem jobs that each shard has completed since a time, at most 30 seconds ago. */
async function countCompleted(sinceMs: number): Promise<number[]> {
  const shards = Array.from({ length: SHARDS }, async (_, index) => {
    const master = await own.cluster.masterOf(slotOfShard(own.servers, index));
    const { prefix } = findShard(own.servers.deploymentId, index, SHARDS);
    return master.client.zcount(`${prefix}:redeem:completed`, sinceMs, "+inf");
  });
  return Promise.all(shards);
}

async function issueForEachShard(count: number): Promise<IssuedVoucher[]> {
  const byShard: IssuedVoucher[][] = Array.from({ length: SHARDS }, () => []);
  while (byShard.some(({ length }) => length < count)) {
    for (const voucher of await issueVouchers(own.servers.db, own.partner, SHARDS * count))
      byShard[shardOf(voucher.id, SHARDS)]?.push(voucher);
  }
  return byShard.flatMap((vouchers) => vouchers.slice(0, count));
}

async function redeemAll(vouchers: readonly IssuedVoucher[]): Promise<void> {
  const [till] = own.tills as [PartnerClient];
  const replies = await Promise.all(vouchers.map(({ code, id }) => till.redeem({ code, externalRef: id })));
  expect(replies.map(({ status }) => status)).toEqual(vouchers.map(() => 200));
}
