import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openFailFast, openPatient, openSubscriber, untilReady } from "../../../src/platform/redis/connections.ts";
import { startNode } from "../../support/child-process.ts";
import { startRedisCluster, type TestCluster } from "../../support/redis-cluster.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";
import { openVoucherctl, type Voucherctl } from "../../support/voucherctl.ts";

const { servers } = useDatabase();
let cluster: TestCluster;
let other: TestCluster;
let voucherctl: Voucherctl;

beforeAll(async () => {
  const start = () => startRedisCluster({ replicas: false });
  [cluster, other] = await Promise.all([start(), start()]);
  voucherctl = openVoucherctl(servers);
});

afterAll(() => Promise.all([cluster.close(), other.close()]));

const address = (of: TestCluster, node = 0) => `127.0.0.1:${of.nodes[node]?.port}`;

it("db check accepts a Redis Cluster with equal shards per master, and rejects addresses of two clusters", async () => {
  expect(await check(cluster.url)).toEqual([]);
  const [risk, ...more] = await check(`redis://${address(cluster)},${address(other)}`);
  expect(risk?.code).toBe("redis_other_cluster");
  expect(risk?.message).toContain(`${address(cluster)} and ${address(other)} do not know each other`);
  expect(more).toEqual([]);
});

it("db check reports a server outside the Redis Cluster and a silent node, but accepts a single address", async () => {
  const single = new URL(servers.redisUrl).host;
  expect(await check(`redis://${address(cluster)},${single}`)).toMatchObject([{ code: "redis_no_cluster" }]);
  expect(await check(`redis://${address(cluster)},127.0.0.1:1`)).toMatchObject([{ code: "redis_node_silent" }]);
  expect(await check(`redis://${address(cluster)}`)).toEqual([]);
});

it("db check names the next multiple if the number of shards is no multiple of the number of masters", async () => {
  const [risk] = await check(cluster.url, "4");
  expect(risk).toMatchObject({
    code: "redis_shards",
    message: expect.stringMatching(/4.*not a multiple.*3 masters.*Use 6\./),
  });
});

it("db check and starting processes report Redis Cluster slots without a master", async () => {
  await other.nodes[0]?.client.cluster("DELSLOTS", 0, 1, 2);
  await until(async () => (await check(other.url)).some(({ code }) => code === "redis_slots"));
  const [risk] = await check(other.url);
  expect(risk?.message).toContain("3 of the 16384 slots");
  const env = { DATABASE_URL: servers.databaseUrl, REDIS_URL: other.url, PORT: "0", QUEUE_SHARDS: "4" };
  for (const program of ["src/main.ts", "workers/main.ts"]) {
    const process = startNode([program], env);
    await untilStarted(() => /redis_slots[\s\S]*redis_shards/.test(process.output())).catch(() =>
      expect.fail(process.output()),
    );
    process.child.kill("SIGTERM");
    expect((await process.ended).exitCode).toBe(0);
  }
});

it.each([
  ["a caller's", openFailFast],
  ["a worker's", openPatient],
  ["a subscriber's", openSubscriber],
])("%s connection to a Redis Cluster succeeds while one node's name has no address", async (_, open) => {
  const redis = open(`redis://gone.invalid:6379,${address(cluster)}`, "test", pino({ level: "silent" }));
  try {
    await untilReady(redis, 10_000);
  } finally {
    redis.disconnect();
  }
});

async function check(redisUrl: string, shards = "6"): Promise<{ code: string; message: string }[]> {
  const env = { REDIS_URL: redisUrl, QUEUE_SHARDS: shards };
  const { exitCode, stdout, stderr } = await voucherctl.run(["db", "check", "--json"], env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: "" });
  const { risks } = JSON.parse(stdout) as { risks: { code: string; message: string }[] };
  return risks.filter(({ code }) => code.startsWith("redis"));
}
