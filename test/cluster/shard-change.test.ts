import { afterAll, beforeAll, expect, it } from "vitest";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { startRedisCluster, type TestCluster } from "../support/redis-cluster.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";
import { startLoad } from "./load.ts";

let cluster: TestCluster;
let servers: TestServers;
let partner: TestPartner;
let key: string;
let voucherctl: Voucherctl;

beforeAll(async () => {
  [cluster, servers] = await Promise.all([startRedisCluster(), openTestServers()]);
  partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
  voucherctl = openVoucherctl({ adminUrl: servers.adminUrl, redisUrl: cluster.url });
});

afterAll(async () => {
  voucherctl.close();
  await endService(servers);
  await cluster.close();
});

const ALL_QUEUES = "redeem,seal,sweep";

const withShards = (shards: string) => ({ REDIS_URL: cluster.url, QUEUE_SHARDS: shards, WORKER_QUEUES: ALL_QUEUES });

/** Two processes, replaced one after the other as in a rolling update. */
async function replace<Process extends TestApi | TestWorker>(
  running: Process[],
  start: () => Promise<Process>,
  stop = (process: Process) => process.close(),
): Promise<Process[]> {
  const started: Process[] = [];
  for (const process of running) {
    started.push(await start());
    await stop(process);
  }
  return started;
}

/** The state of each number of shards, once it is as expected. */
async function untilStates(expected: Record<number, string>): Promise<void> {
  await until(async () => {
    const { divisions } = await voucherctl.json("queue", "shards");
    const states = Object.fromEntries(
      divisions.map((each: { shards: number; state: string }) => [each.shards, each.state]),
    );
    return JSON.stringify(states) === JSON.stringify(expected);
  });
}

it("the number of shards changes from four to six under load: nothing is lost, and voucherctl tells each step", async () => {
  const startWorkersWith = (shards: string) => () => startWorkers(servers, withShards(shards));
  const startApiWith = (shards: string) => () => startApi(servers, withShards(shards));
  let workers = [await startWorkersWith("4")(), await startWorkersWith("4")()];
  let apis = [await startApiWith("4")(), await startApiWith("4")()];
  const tills: PartnerClient[] = apis.map(({ url }) => partnerClient(url, key));
  const load = await startLoad(servers, partner, tills);
  const grow = async (by: number) => {
    const target = load.answers.length + by;
    await until(() => load.answers.length >= target, 60_000);
  };
  await grow(200);

  workers = await replace(workers, startWorkersWith("4,6"));
  await grow(200);
  const { divisions } = await voucherctl.json("queue", "shards");
  expect(divisions.map(({ shards, apis: count }: { shards: number; apis: number }) => [shards, count])).toEqual([
    [4, 2],
    [6, 0],
  ]);

  // Partners go to the new process before the old one ends, as a load balancer makes them.
  const old = apis;
  apis = await replace(apis, startApiWith("6"), async () => undefined);
  tills.splice(0, tills.length, ...apis.map(({ url }) => partnerClient(url, key)));
  await grow(50);
  for (const process of old) await process.close();
  await grow(200);

  workers = await replace(workers, startWorkersWith("6"));
  await grow(200);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  await untilStates({ 4: "unused", 6: "in_use" });
});
