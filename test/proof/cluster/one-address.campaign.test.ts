import { expect, it } from "vitest";
import { shardOf } from "../../../src/platform/queues/shards.ts";
import { runNode, startNode } from "../../support/child-process.ts";
import { partnerClient, send } from "../../support/client.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until, untilStarted } from "../../support/until.ts";
import { SHARDS, useCluster } from "./load.ts";

// A managed cluster has one address, which leads to any of its nodes. The nodes name each other by other addresses.

const own = useCluster();

const openFront = () => openTcpProxy(`redis://127.0.0.1:${own.cluster.nodes[0]?.port}`);

it("the service works in every shard of a Redis Cluster with one address, and db check finds no risk", async () => {
  const front = await openFront();
  const env = { REDIS_URL: front.url, QUEUE_SHARDS: String(SHARDS) };
  const api = await startApi(own.servers, env);
  const worker = await startWorkers(own.servers, { ...env, WORKER_QUEUES: "redeem,seal,sweep" });
  try {
    const till = partnerClient(api.url, own.key);
    const vouchers = await issueVouchers(own.servers.db, own.partner, 60);
    expect(new Set(vouchers.map(({ id }) => shardOf(id, SHARDS))).size).toBe(SHARDS);
    for (const { code, id } of vouchers) {
      expect((await till.reserve(code)).status).toBe(200);
      expect((await till.redeem({ code, externalRef: id })).status).toBe(200);
    }
    const { status, body } = await send("GET", `${api.url}/readyz`);
    expect({ status, redis: body.redis, silent: body.silentShards }).toEqual({ status: 200, redis: "ok" });
    const command = { ...env, DATABASE_URL: own.servers.adminUrl };
    const check = JSON.parse((await runNode(["src/cli/main.ts", "db", "check", "--json"], command)).stdout);
    expect(check.risks.filter(({ code }: { code: string }) => code.startsWith("redis"))).toEqual([]);
    expect(check.redis).toContainEqual(expect.objectContaining({ name: "kind", actual: "Redis Cluster" }));
    const shards = await runNode(["src/cli/main.ts", "queue", "shards", "--json"], command);
    expect(shards).toMatchObject({ exitCode: 0, stderr: "" });
  } finally {
    await Promise.all([api.close(), worker.close()]);
    await front.close();
  }
});

it.each([
  ["src/main.ts", "listening"],
  ["workers/main.ts", "working"],
])("%s exits if REDIS_URL first responds after the start and leads to a cluster", async (program, started) => {
  const front = await openFront();
  front.cut();
  const env = { DATABASE_URL: own.servers.databaseUrl, REDIS_URL: front.url, PORT: "0", QUEUE_SHARDS: String(SHARDS) };
  const process = startNode([program], env);
  try {
    await untilStarted(() => process.output().includes(`"${started}"`));
    front.mend();
    await until(() => process.child.exitCode !== null);
    expect(process.child.exitCode).toBe(1);
    expect(process.output()).toContain(
      "REDIS_URL leads to a Redis Cluster, which did not answer when this process started.",
    );
  } finally {
    process.child.kill("SIGKILL");
    await front.close();
  }
});

it("a process refuses to start if a Redis Cluster's single address names a database", async () => {
  const address = `127.0.0.1:${own.cluster.nodes[0]?.port}`;
  const env = { DATABASE_URL: own.servers.databaseUrl, REDIS_URL: `redis://${address}/3`, PORT: "0" };
  const process = startNode(["src/main.ts"], env);
  try {
    await untilStarted(() => process.child.exitCode !== null);
    const reason = `REDIS_URL names database 3, and Redis at ${address} is a cluster, which has only database 0.`;
    const stderr = `${reason} Leave the number out.\n`;
    expect(await process.ended).toEqual({ exitCode: 78, stdout: "", stderr });
  } finally {
    process.child.kill("SIGKILL");
  }
});
