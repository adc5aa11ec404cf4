import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Leases } from "../../src/holds/lease.ts";
import { QUEUES } from "../../src/queues/catalog.ts";
import { findShard, shardOf, slotOf } from "../../src/queues/shards.ts";
import type { IssuedVoucher } from "../../src/services/admin/issue-batch.ts";
import { type PartnerClient, partnerClient, send } from "../support/client.ts";
import { makeOffer, signedIn } from "../support/marketplace.ts";
import { startRedisCluster, type TestCluster } from "../support/redis-cluster.ts";
import { scrape } from "../support/scrape.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, writeKeysFile } from "../support/user-tokens.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";
import { SHARDS, shardsOn, slotOfShard } from "./load.ts";

const OPS_TOKEN = "operators-of-the-tests";

let cluster: TestCluster;
let servers: TestServers;
let env: Record<string, string>;
let api: TestApi;
let worker: TestWorker;
let partner: TestPartner;
let key: string;
let till: PartnerClient;
let rival: PartnerClient;
let issuer: IssuerKey;
let keysFile: KeysFile;
let voucherctl: Voucherctl;

beforeAll(async () => {
  [cluster, servers] = await Promise.all([startRedisCluster(), openTestServers()]);
  issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  env = {
    REDIS_URL: cluster.url,
    QUEUE_SHARDS: String(SHARDS),
    AUTH_JWKS_URL: keysFile.url,
    METRICS_PORT: "0",
    OPS_TOKEN,
    SWEEP_INTERVAL_MS: "500",
  };
  [api, worker] = await Promise.all([
    startApi(servers, env),
    startWorkers(servers, { ...env, WORKER_QUEUES: "redeem,seal,sweep" }),
  ]);
  partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
  till = partnerClient(api.url, key);
  rival = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  voucherctl = openVoucherctl({ adminUrl: servers.adminUrl, redisUrl: cluster.url });
});

afterAll(async () => {
  voucherctl.close();
  await endService(servers);
  keysFile.remove();
  await cluster.close();
});

/** The number of jobs that each shard of a queue has completed since a time. A queue keeps them for 30 seconds. */
async function countCompleted(queue: string, sinceMs = 0): Promise<number[]> {
  return Promise.all(
    Array.from({ length: SHARDS }, async (_, index) => {
      const master = await cluster.masterOf(slotOfShard(servers, index));
      const { prefix } = findShard(servers.deploymentId, index, SHARDS);
      return master.client.zcount(`${prefix}:${queue}:completed`, sinceMs, "+inf");
    }),
  );
}

/** Issues vouchers until each shard has `count`. */
async function issueForEachShard(count: number): Promise<IssuedVoucher[]> {
  const byShard: IssuedVoucher[][] = Array.from({ length: SHARDS }, () => []);
  while (byShard.some(({ length }) => length < count)) {
    for (const voucher of await issueVouchers(servers.db, partner, SHARDS * count))
      byShard[shardOf(voucher.id, SHARDS)]?.push(voucher);
  }
  return byShard.flatMap((vouchers) => vouchers.slice(0, count));
}

describe("on a Redis Cluster with six shards", () => {
  it("needs at most 60 connections to Redis for an API and a worker process", async () => {
    await Promise.all(
      (await issueVouchers(servers.db, partner, 30)).map(({ code, id }) => till.redeem({ code, externalRef: id })),
    );
    const countOwn = async () => {
      const clients = await Promise.all(cluster.nodes.map(({ client }) => client.client("LIST")));
      const lines = clients.flatMap((list) => String(list).trim().split("\n"));
      return lines.filter((line) => !/ name= | cmd=replconf/.test(line)).length;
    };
    // A busy machine replaces connections that were slow to open, and the server learns of their end later.
    await until(async () => (await countOwn()) <= 60);
    expect(await countOwn()).toBeGreaterThan(20);
  });

  it("lays two shards on each of the three masters, and adds each redeem to its voucher's shard", async () => {
    for (const master of await cluster.masters())
      expect(await shardsOn(cluster, servers, master)).toHaveLength(SHARDS / 3);
    const vouchers = await issueForEachShard(10);
    const since = Date.now();
    const replies = await Promise.all(vouchers.map(({ code, id }) => till.redeem({ code, externalRef: id })));
    expect(replies.map(({ status }) => status)).toEqual(vouchers.map(() => 200));
    const expected = Array.from({ length: SHARDS }, () => 10);
    await until(async () => JSON.stringify(await countCompleted("redeem", since)) === JSON.stringify(expected));
  });

  it("reserves, refuses a rival by the lease, redeems by ticket and releases, on every master", async () => {
    // So many that each master has the leases of some.
    const vouchers = await issueVouchers(servers.db, partner, 48);
    const masters = await Promise.all(vouchers.map(({ id }) => cluster.masterOf(slotOf(id))));
    expect(new Set(masters).size).toBe(3);
    for (const [index, { code, id }] of vouchers.entries()) {
      const reserved = await till.reserve(code);
      expect(reserved.status).toBe(200);
      expect(await masters[index]?.client.exists(servers.leaseKey(id))).toBe(1);
      expect(await rival.reserve(code)).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
      const { ticket } = reserved.body;
      const ended = index % 2 === 0 ? await till.redeem({ ticket, externalRef: id }) : await till.release(ticket);
      expect(ended.status).toBe(200);
    }
  });

  it("seals claims in the shards of their vouchers", async () => {
    const offer = await makeOffer(servers.db, 12);
    const claims = await Promise.all(
      Array.from({ length: 12 }, async () => (await signedIn(api.url, issuer)).claimProduct(offer.productId)),
    );
    expect(claims.map(({ status }) => status)).toEqual(claims.map(() => 200));
    const pending = () => servers.db.query("SELECT 1 FROM voucher_events WHERE seal_status = 'Pending'");
    await until(async () => (await pending()).rowCount === 0);
    expect((await countCompleted("seal")).filter((count) => count > 0).length).toBeGreaterThan(1);
  });

  it("counts calls in Redis, and refuses those above the limit", async () => {
    const limited = await startApi(servers, { ...env, RATE_LIMIT_RPS: "10", METRICS_PORT: "" });
    const client = partnerClient(limited.url, (await makeKey(servers.db, partner.organizationId)).key);
    const { code } = await issueVoucher(servers.db, partner);
    const statuses = (await Promise.all(Array.from({ length: 40 }, () => client.lookUp(code)))).map(
      ({ status }) => status,
    );
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(20);
    expect(statuses).toContain(429);
    await limited.close();
  });

  it("removes leases without a reservation from every master, within ten seconds", async () => {
    const leases = new Leases(api.ctx.redis, { id: servers.deploymentId });
    const vouchers = await issueVouchers(servers.db, partner, 60);
    const holder = { ticket: "rsv_orphan", keyId: "key_orphan" };
    for (const { id } of vouchers) await leases.acquire(id, holder, 900_000);
    const left = async () => {
      const found = await Promise.all(vouchers.map(({ id }) => api.ctx.redis.exists(servers.leaseKey(id))));
      return found.filter((exists) => exists === 1).length;
    };
    expect(await left()).toBe(60);
    await until(async () => (await left()) === 0, 10_000);
  });

  it("reports every shard in the metrics and shows every shard on the dashboard", async () => {
    const report = await scrape(api.metricsUrl);
    const fetchers = await scrape(worker.metricsUrl);
    for (let index = 0; index < SHARDS; index++) {
      const shard = `${index}/${SHARDS}`;
      expect(report.value("voucher_shard_up", { shard })).toBe(1);
      expect(report.value("voucher_queue_jobs", { queue: "redeem", shard, state: "waiting" })).toBe(0);
      expect(fetchers.value("voucher_queue_fetchers", { queue: "redeem", shard })).toBeGreaterThan(0);
      expect(fetchers.value("voucher_queue_fetchers", { queue: "seal", shard })).toBeGreaterThan(0);
    }
    expect(fetchers.value("voucher_queue_fetchers", { queue: "sweep", shard: `0/${SHARDS}` })).toBe(1);
    const headers = { authorization: `Basic ${Buffer.from(`ops:${OPS_TOKEN}`).toString("base64")}` };
    const board = await (await fetch(`${api.url}/ops/queues/api/queues`, { headers })).json();
    const names = (board as { queues: { name: string }[] }).queues.map(({ name }) => name);
    // Two queues have shards; the others are in the first one.
    expect(new Set(names).size).toBe(2 * SHARDS + QUEUES.length - 2);
    expect(names).toContain("3/6 redeem");
  });

  it("lets voucherctl void a voucher, check the servers and tell which shards are in use", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    const { code } = (await servers.db.query("SELECT code FROM vouchers WHERE id = $1", [id])).rows[0];
    await till.reserve(code);
    const shards = { QUEUE_SHARDS: String(SHARDS) };
    const voided = await voucherctl.run(
      ["voucher", "void", code, "--org", partner.organizationId, "--reason", "test"],
      shards,
    );
    expect(voided).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await api.ctx.redis.exists(servers.leaseKey(id))).toBe(0);
    const { stdout } = await voucherctl.run(["db", "check", "--json"], shards);
    const codes = JSON.parse(stdout).risks.map((risk: { code: string }) => risk.code);
    expect(codes.filter((risk: string) => risk.startsWith("redis"))).toEqual([]);
    // Workers add jobs of their own, such as a sweep, so a reading may find one.
    const { divisions } = await until(async () => {
      const report = await voucherctl.json("queue", "shards");
      return report.divisions.every(({ jobs }: { jobs: number }) => jobs === 0) && report;
    });
    expect(divisions).toEqual([{ shards: SHARDS, apis: 1, jobs: 0, unserved: [], served: true, state: "in_use" }]);
  });

  it("stays ready with one shard's server away and names its shards; the others redeem, and all do when it is back", async () => {
    const master = (await cluster.masters())[2];
    const lost = await shardsOn(cluster, servers, master as never);
    const replicas = cluster.nodes.filter((node) => node !== master);
    const info = await Promise.all(replicas.map(({ client }) => client.info("replication")));
    const replica = replicas.find((_, index) => info[index]?.includes(`master_port:${master?.port}`));
    await Promise.all([master?.kill(), replica?.kill()]);
    const names = lost.map((index) => `${index}/${SHARDS}`);
    await until(async () => {
      const { status, body } = await send("GET", `${api.url}/readyz`);
      expect(status).toBe(200);
      return JSON.stringify(body.silentShards) === JSON.stringify(names);
    });
    const report = await scrape(api.metricsUrl);
    expect(names.map((shard) => report.value("voucher_shard_up", { shard }))).toEqual(names.map(() => 0));
    const vouchers = await issueForEachShard(6);
    const healthy = vouchers.filter(({ id }) => !lost.includes(shardOf(id, SHARDS)));
    const away = vouchers.find(({ id }) => lost.includes(shardOf(id, SHARDS)));
    const replies = await Promise.all(healthy.map(({ code, id }) => till.redeem({ code, externalRef: id })));
    expect(replies.map(({ status }) => status)).toEqual(healthy.map(() => 200));
    const order = { code: away?.code, externalRef: away?.id };
    expect(await till.redeem(order)).toMatchObject({ status: 503, body: { code: "redeem_timeout" } });
    // Longer than two of BullMQ's blocking waits, after which it replaces their connections.
    await sleep(14_000);
    await Promise.all([master?.start(), replica?.start()]);
    await until(async () => {
      const { body } = await send("GET", `${api.url}/readyz`);
      return body.silentShards === undefined;
    });
    await until(async () => (await till.redeem(order)).status === 200);
    const later = vouchers.filter(({ id }) => lost.includes(shardOf(id, SHARDS)));
    expect(later).toHaveLength(6 * lost.length);
    for (const { code, id } of later) expect((await till.redeem({ code, externalRef: id })).status).toBe(200);
  });
});
