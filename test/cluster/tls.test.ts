import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runNode } from "../support/child-process.ts";
import { partnerClient, send } from "../support/client.ts";
import { startRedisCluster, type TestCluster } from "../support/redis-cluster.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers } from "../support/service.ts";
import { makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { SHARDS, startLoad } from "./load.ts";

const authorities = getCACertificates("default");

let cluster: TestCluster;
let servers: TestServers;

beforeAll(async () => {
  [cluster, servers] = await Promise.all([startRedisCluster({ secure: true }), openTestServers()]);
  setDefaultCACertificates([...authorities, readFileSync(cluster.tls?.caFile ?? "", "utf8")]);
});

afterAll(async () => {
  await endService(servers);
  setDefaultCACertificates(authorities);
  await cluster.close();
});

it("a cluster that speaks TLS only, with the documented user: redeems in every shard, and voucherctl reads the shards and finds no risk", async () => {
  const env = { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS) };
  const api = await startApi(servers, env);
  await startWorkers(servers, { ...env, WORKER_QUEUES: "redeem,seal,sweep" });
  const partner = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, partner.organizationId);
  const load = await startLoad(servers, partner, [partnerClient(api.url, key)]);
  const served = () => new Set(load.answers.map(({ shard }) => shard)).size;
  await until(() => served() === SHARDS);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  const readiness = await send("GET", `${api.url}/readyz`);
  expect(readiness).toMatchObject({ status: 200, body: { redis: "ok" } });
  expect(readiness.body.silentShards).toBeUndefined();
  const command = { ...env, DATABASE_URL: servers.adminUrl, NODE_EXTRA_CA_CERTS: cluster.tls?.caFile ?? "" };
  const shards = await runNode(["src/cli/main.ts", "queue", "shards", "--json"], command);
  expect(shards).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(shards.stdout).divisions).toMatchObject([{ shards: SHARDS, state: "in_use" }]);
  const check = await runNode(["src/cli/main.ts", "db", "check", "--json"], command);
  const { risks } = JSON.parse(check.stdout) as { risks: { code: string }[] };
  expect(risks.filter(({ code }) => code.startsWith("redis"))).toEqual([]);
});
