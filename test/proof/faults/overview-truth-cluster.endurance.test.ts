import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { basic, OPS_TOKEN } from "../../support/browse.ts";
import { until } from "../../support/until.ts";
import { useFaultCluster } from "./use-fault-cluster.ts";

/** How long the load runs without a fault. Milliseconds. */
const HEALTHY_MS = 600_000;
/** So few concurrent callers that any machine can serve them, and each caller's pause after an answer. Milliseconds. */
const [VISITORS, PAUSE_MS] = [4, 200];
/** Maximum time until the overview shows a fault, and until it shows none after the repair. Milliseconds. */
const [KNOWN_MS, CALM_MS] = [20_000, 60_000];

// At the level "info", a worker logs that it has started.
const own = useFaultCluster(
  { redeemWaitMs: 3_000, env: { OPS_TOKEN, LOG_LEVEL: "info" }, redisCluster: true },
  false,
  VISITORS * (HEALTHY_MS / PAUSE_MS),
);

it("the overview names the two of six shards whose Redis master and replica are unreachable", async () => {
  const redis = own.cluster.redisCluster;
  if (redis === null) throw new Error("there is no Redis Cluster");
  await until(async () => (await readAttention()).length === 0, CALM_MS);
  const [master] = await redis.masters();
  if (master === undefined) throw new Error("there is no master");
  const replica = await redis.replicaOf(master);
  for (const node of [master, replica]) node.freeze();
  try {
    const isNamed = ({ severity, runbook, what }: Shown) =>
      severity === "red" &&
      runbook === "VouchersShardAway" &&
      /^Nothing is redeemed in shards \d\/6, \d\/6: a Redis server does not answer$/.test(what);
    const shown = await until(async () => {
      const all = await readAttention();
      return all.some(isNamed) ? all : null;
    }, KNOWN_MS);
    // The other shards continue.
    expect(shown.filter(({ runbook }) => runbook === "VouchersNothingRedeemed")).toEqual([]);
  } finally {
    for (const node of [master, replica]) node.thaw();
  }
  await until(async () => (await readAttention()).length === 0, CALM_MS);
});

it("the overview shows no red fault in ten minutes of load", { timeout: 2 * HEALTHY_MS }, async () => {
  await until(async () => (await readAttention()).length === 0, CALM_MS);
  const reds = new Set<string>();
  const statuses: (number | null)[] = [];
  let isOver = false;
  const visit = async (visitor: number) => {
    for (let turn = visitor; !isOver; turn++) {
      const { status } = await own.redeem(own.newOrder(), turn % 2 === 0 ? own.api : own.otherApi);
      statuses.push(status);
      await sleep(PAUSE_MS);
    }
  };
  const visiting = Promise.all(Array.from({ length: VISITORS }, (_, visitor) => visit(visitor)));
  for (const endsAt = performance.now() + HEALTHY_MS; performance.now() < endsAt; await sleep(500)) {
    for (const one of [own.api, own.otherApi])
      for (const { severity, what } of await readAttention(one)) if (severity === "red") reds.add(what);
  }
  isOver = true;
  await visiting;
  const redeemed = statuses.filter((status) => status === 200).length;
  process.stdout.write(`nothing red in ten minutes with ${redeemed} of ${statuses.length} redeems\n`);
  expect([...reds]).toEqual([]);
  expect(redeemed).toBeGreaterThan(0);
});

interface Shown {
  severity: string;
  runbook: string;
  what: string;
}

async function readAttention({ url } = own.api): Promise<Shown[]> {
  const response = await fetch(`${url}/ops/overview.json`, { headers: basic(OPS_TOKEN) });
  return ((await response.json()) as { attention: Shown[] }).attention;
}
