import { beforeAll, expect, it } from "vitest";
import { partnerClient } from "../../support/client.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../../support/voucherctl.ts";
import { longestGap, startLoad, useCluster } from "./load.ts";

const own = useCluster();
let voucherctl: Voucherctl;

beforeAll(() => {
  voucherctl = openVoucherctl({ adminUrl: own.servers.adminUrl, redisUrl: own.cluster.url });
});

/** Longer than a worker needs to start on a busy machine. Milliseconds. */
const REDEEM_WAIT_MS = "30000";

const withShards = (shards: string) => ({
  ...own.env,
  QUEUE_SHARDS: shards,
  REDEEM_WAIT_MS,
  WORKER_QUEUES: "redeem,seal,sweep",
});

it("a change from four to six queue shards under load loses nothing, and voucherctl reports each step", async () => {
  const startWorkersWith = (shards: string) => () => startWorkers(own.servers, withShards(shards));
  const startApiWith = (shards: string) => () => startApi(own.servers, withShards(shards));
  let workers = [await startWorkersWith("4")(), await startWorkersWith("4")()];
  let apis = [await startApiWith("4")(), await startApiWith("4")()];
  const clients = () => apis.map(({ url }) => partnerClient(url, own.key));
  const tills = clients();
  const load = await startLoad(own.servers, own.partner, tills);
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

  // Partners use the new process before the old one ends, as with a load balancer.
  const old = apis;
  apis = await replace(apis, startApiWith("6"), async () => undefined);
  tills.splice(0, tills.length, ...clients());
  await grow(50);
  for (const process of old) await process.close();
  await grow(200);

  workers = await replace(workers, startWorkersWith("6"));
  await grow(200);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(longestGap(load.answers, null, load.answers[0]?.answeredAt ?? 0)).toBeLessThan(10_000);
  await until(async () => {
    const { divisions: left } = await voucherctl.json("queue", "shards");
    const states = left.map(({ shards, state }: { shards: number; state: string }) => `${shards} ${state}`);
    return states.join() === "4 unused,6 in_use";
  });
});

/** Replaces processes one after the other, as in a rolling update. */
async function replace<Process extends { close(): Promise<void> }>(
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
