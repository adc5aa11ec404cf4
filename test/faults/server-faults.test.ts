import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { assertInvariants } from "../support/invariants.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until, untilStarted } from "../support/until.ts";
import { type ApiProcess, serviceUrl } from "./cluster.ts";
import type { FaultPostgres } from "./fault-postgres.ts";
import type { Outcome } from "./http-call.ts";
import { answerOf, openScenario, type Scenario, statusOf } from "./scenario.ts";
import { SeededRandom } from "./seeded-random.ts";
import { hasFakeTime } from "./stepped-clock.ts";

// The hardest faults of the campaign, one at a time, in the order of events that is hardest to survive.

const HAS_CLOCK = hasFakeTime();
const HOUR_MS = 3_600_000;

let scenario: Scenario;
let postgres: FaultPostgres;
let apis: ApiProcess[];

beforeAll(async () => {
  scenario = await openScenario({}, { postgres: { standby: true, clock: HAS_CLOCK } });
  postgres = scenario.cluster.postgres as FaultPostgres;
  apis = scenario.cluster.apis;
  await scenario.makeWhole();
});

afterEach(async () => {
  if (HAS_CLOCK) await postgres.clock.set(0);
  await scenario.makeWhole();
});

afterAll(async () => {
  await assertInvariants(scenario.cluster.db).finally(() => scenario.close());
});

interface Order extends Record<string, string> {
  code: string;
  externalRef: string;
}

function newOrders(count: number): { id: string; body: Order }[] {
  return Array.from({ length: count }, () => {
    const { id, code } = scenario.nextVoucher();
    return { id, body: { code, externalRef: scenario.newRef() } };
  });
}

const redeemAll = (orders: readonly { body: Order }[], api: ApiProcess): Promise<Outcome[]> =>
  Promise.all(orders.map(({ body }) => scenario.redeem(api, body)));

/** Processes whose COMMIT waits for the standby: an API, or a worker with a redemption, which holds the lock of its reference. */
async function waitingCommits(): Promise<string[]> {
  const { rows } = await scenario.cluster.db.query(
    `SELECT application_name AS name FROM pg_stat_activity AS a
      WHERE wait_event = 'SyncRep' AND usename = 'pva_api'
        AND (application_name = 'api' OR EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND locktype = 'advisory'))`,
  );
  return rows.map(({ name }) => name);
}

describe("a Postgres whose standby is cut off from it", () => {
  const interrupt = (how: "cancel" | "terminate") => () =>
    scenario.cluster.db.query(`SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
  it.each([
    ["its host restarts", () => postgres.kill().then(() => postgres.start())],
    ["one of its processes is killed", () => postgres.killOne(new SeededRandom(1))],
    ["the waiting commits are cancelled", interrupt("cancel")],
    ["the waiting sessions are ended", interrupt("terminate")],
  ])("a Postgres whose standby is cut off from it loses no redemption that was confirmed when %s and the standby is promoted", async (_how, crash) => {
    const orders = newOrders(4);
    const ids = orders.map(({ id }) => id);
    postgres.cutOffStandby();
    const asked = redeemAll(orders, apis[0] as ApiProcess);
    await until(async () => (await waitingCommits()).includes("worker"));
    await crash();
    // The primary now shows what the standby lacks.
    await until(async () => (await scenario.countRedemptions(ids).catch(() => 0)) > 0);
    let isAnswered = false;
    const repeated = apis.map((api) => redeemAll(orders, api).finally(() => (isAnswered = true)));
    await until(async () => isAnswered || (await waitingCommits()).includes("api"));
    await postgres.promoteStandby();
    await postgres.start();
    const outcomes = (await Promise.all([asked, ...repeated])).flat();
    const confirmed = ids.filter((_, at) => outcomes.some((one, n) => n % ids.length === at && statusOf(one) === 200));
    expect(await scenario.countRedemptions(confirmed)).toBe(confirmed.length);
  });
});

describe("workers that are frozen with jobs in memory for longer than every deadline", () => {
  const steps: [string, number][] = [
    ["goes on", 0],
    ["steps back by 5 s", -5_000],
    ["steps ahead by 5 s", 5_000],
  ];
  it.each(
    steps.slice(0, HAS_CLOCK ? 3 : 1),
  )("workers that are frozen with jobs in memory for longer than every deadline redeem nothing of what was answered redeem_timeout when they continue, while the database's clock %s", async (_how, toMs) => {
    const { cluster } = scenario;
    const wire = await openTcpProxy(postgres.url);
    await Promise.all(cluster.workers.map((worker) => worker.kill()));
    const only = cluster.addWorker({ DATABASE_URL: serviceUrl(wire.url) });
    only.start();
    const probe = newOrders(1);
    await untilStarted(async () =>
      (await redeemAll(probe, apis[0] as ApiProcess)).every((one) => statusOf(one) === 200),
    );
    // The jobs are in memory and their first statement is on its way.
    wire.jam();
    const orders = newOrders(20);
    const asked = redeemAll(orders, apis[0] as ApiProcess);
    await until(async () => (await scenario.countJobs()) >= 20 && (await scenario.countWaitingJobs()) === 0);
    only.freeze();
    const outcomes = await asked;
    const denied = orders.filter((_, at) => answerOf(outcomes[at] as Outcome).body.code === "redeem_timeout");
    expect(denied.length).toBeGreaterThan(0);
    if (toMs !== 0) await postgres.clock.set(toMs);
    only.thaw();
    wire.mend();
    await until(async () => (await scenario.countJobs()) === 0);
    expect(await scenario.countRedemptions(denied.map(({ id }) => id))).toBe(0);
    await only.kill();
    cluster.workers.splice(cluster.workers.indexOf(only), 1);
    await wire.close();
  });
});

describe.skipIf(!HAS_CLOCK)("a database whose clock was an hour ahead while a partner listed redemptions", () => {
  it("a database whose clock was an hour ahead while a partner listed redemptions dates redemptions by its clock again as soon as that is right", async () => {
    const [api] = apis as [ApiProcess];
    const list = () => fetch(`${api.url}/partner/redemptions`, { headers: { "x-api-key": scenario.till } });
    const isAhead = async () => (answerOf(await scenario.ready(api)).body.clockAheadSeconds ?? 0) > 0;
    await postgres.clock.set(HOUR_MS);
    await until(isAhead);
    expect((await list()).status).toBe(200);
    await postgres.clock.set(0);
    const [order] = newOrders(1);
    const { body } = answerOf(await scenario.redeem(api, (order as { body: Order }).body));
    expect(Math.abs(Date.parse(body.redeemedAt) - Date.now())).toBeLessThan(20_000);
  });
});

it("a hot copy of the database with a worker on the same Redis redeems nothing and confirms nothing", async () => {
  const { cluster } = scenario;
  const copy = await cluster.startHotCopy();
  await untilStarted(async () => {
    const { rows } = await copy.db.query("SELECT FROM pg_stat_activity WHERE application_name = 'worker'");
    return rows.length > 0;
  });
  // Only the copy's worker is left to take these jobs.
  await Promise.all(cluster.workers.map((worker) => worker.kill()));
  const outcomes = await redeemAll(newOrders(10), apis[0] as ApiProcess);
  expect(await copy.stop()).toEqual([]);
  expect(outcomes.map(statusOf)).not.toContain(200);
});
