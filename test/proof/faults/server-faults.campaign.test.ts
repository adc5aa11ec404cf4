import { beforeAll, expect, it } from "vitest";
import { markBrokenChains } from "../../../src/core/chain/db/broken-chains.ts";
import { basic, OPS_TOKEN } from "../../support/browse.ts";
import { besideTransaction, countWaiting, untilWaiting } from "../../support/outside-transaction.ts";
import { issueTestBatch } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until, untilStarted } from "../../support/until.ts";
import { type ApiProcess, type Cluster, processesOf, serviceUrl } from "./cluster.ts";
import type { FaultPostgres } from "./fault-postgres.ts";
import type { Answer } from "./http-call.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { ServiceProcess } from "./service-process.ts";
import { hasFakeTime } from "./stepped-clock.ts";
import { type Order, useFaultCluster } from "./use-fault-cluster.ts";

// The hardest faults of the campaign, one at a time, in the hardest order of events.

const HAS_CLOCK = hasFakeTime();
const HOUR_MS = 3_600_000;
const JUMP_MS = 400 * 24 * HOUR_MS;
const REDEEM_WAIT_MS = 8_000;

// At this level, an API logs each accepted request.
const own = useFaultCluster({ redeemWaitMs: REDEEM_WAIT_MS, env: { LOG_LEVEL: "info", OPS_TOKEN } }, HAS_CLOCK);
const { newOrder, newOrders, get, post, redeem, redeemAll, untilRedeems, countRedemptions, countRedeemJobs } = own;

let cluster: Cluster;
let postgres: FaultPostgres;
let api: ApiProcess;
let otherApi: ApiProcess;

beforeAll(() => {
  ({ cluster, postgres, api, otherApi } = own);
});

it("a worker that is killed before its commit redeems nothing, and a retry redeems once", async () => {
  const { db } = cluster;
  const [worker, otherWorker] = cluster.workers as [ServiceProcess, ServiceProcess];
  const { id, body } = newOrder();
  const { ticket } = (await post(api, "reserve", { code: body.code })).body;
  const order = { body: { ticket, externalRef: body.externalRef } };
  await otherWorker.kill();
  const { asked } = await besideTransaction(db, async (outside) => {
    // With this lock, the worker waits after it has written the redemption and before it ends the reservation.
    await outside.query("SELECT ticket FROM reservations WHERE ticket = $1 FOR UPDATE", [ticket]);
    const asked = redeem(order, api);
    await untilWaiting(db, 1, "worker");
    await worker.kill();
    // The job's transaction has ended long before the caller's deadline.
    await until(async () => (await countWaiting(db, "worker")) === 0);
    return { asked };
  });
  const answer = await asked;
  expectRetryLater(answer, "redeem_timeout");
  expect(answer.body.error).toContain("This attempt redeemed nothing.");
  expect(await countRedemptions([id])).toBe(0);
  const { body: seen } = await get(api, `/partner/vouchers/${ticket}`);
  expect(seen).toMatchObject({ voucher: { status: "Active" }, reservation: { ticket } });
  await cluster.heal();
  const retried = await until(async () => {
    const again = await redeem(order, otherApi);
    return again.status === 200 ? again : null;
  });
  expect(retried.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: id });
  await until(async () => (await countRedeemJobs()).all === 0);
  expect(await countRedemptions([id])).toBe(1);
});

/** Waits until /readyz answers with another status than 200. It repeats its last result for half a second. */
const untilUnready = () =>
  until(async () => {
    const answer = await get(api, "/readyz");
    return answer.status === 200 ? null : answer;
  });

it("reserve and redeem answer 503 in time while Redis hangs, and look-ups answer 200", async () => {
  const [reserved, order] = [newOrder(), newOrder()];
  cluster.redis.freeze();
  const [lookedUp, held, redeemed, ready] = await Promise.all([
    timed(get(api, `/partner/vouchers/${reserved.body.code}`)),
    timed(post(api, "reserve", { code: reserved.body.code })),
    timed(redeem(order, api)),
    timed(untilUnready()),
  ]);
  cluster.redis.thaw();
  expect(lookedUp.status).toBe(200);
  expect(lookedUp.tookMs).toBeLessThan(held.tookMs);
  expectRetryLater(held, "unavailable");
  expectRetryLater(redeemed, "redeem_timeout");
  expect(ready.body).toMatchObject({ code: "unavailable", postgres: "ok", redis: "unavailable" });
  // Each call gives up after 1.5 seconds, sooner than a redeem's wait ends.
  for (const { tookMs } of [held, redeemed, ready]) expect(tookMs).toBeLessThan(REDEEM_WAIT_MS);
  await until(async () => (await get(api, "/readyz")).status === 200);
  await until(async () => (await post(api, "reserve", { code: reserved.body.code })).status === 200);
  await until(async () => (await redeem(order, otherApi)).status === 200);
  expect(await countRedemptions([order.id])).toBe(1);
});

it("an API and a worker that get SIGTERM under load answer every accepted request and exit with 0", async () => {
  const { apis, workers } = cluster;
  const wrong: Answer[] = [];
  const reset: string[] = [];
  let answered = 0;
  let refused = 0;
  let isOver = false;
  const loggedBefore = api.process.readLog().length;
  const check = (at: ApiProcess, answer: Answer) => {
    if (answer.status === 200) answered += 1;
    else if (at === api && answer.failure === "refused") refused += 1;
    else if (at === api && answer.failure === "reset") reset.push(answer.requestId);
    else wrong.push(answer);
  };
  const visit = async (visitor: number) => {
    for (let turn = visitor; !isOver; turn++) {
      const at = apis[turn % apis.length] as ApiProcess;
      const order = newOrder();
      check(at, await get(at, `/partner/vouchers/${order.body.code}`));
      if (turn % 3 === 0) check(at, await post(at, "reserve", { code: order.body.code }));
      check(at, await redeem(order, at));
    }
  };
  const visitors = Array.from({ length: 12 }, (_, visitor) => visit(visitor));
  await until(() => answered > 200);
  expect(await Promise.all([api.process.terminate(), workers[0]?.terminate()])).toEqual([0, 0]);
  const before = answered;
  await until(() => answered > before + 100 && refused > 20);
  isOver = true;
  await Promise.all(visitors);
  expect(wrong).toEqual([]);
  // The kernel resets connections that the process had not accepted when it stopped listening. The log has a line for
  // every accepted request, answered or not.
  const log = api.process.readLog().slice(loggedBefore);
  expect(reset.filter((requestId) => log.includes(requestId))).toEqual([]);
  expect(log).not.toContain('"status":499');
});

/**
 * Lists the processes whose COMMIT waits for the standby. Of the workers, only those that redeem: their sessions have
 * an advisory lock for the reference.
 */
async function waitingCommits(): Promise<string[]> {
  const { rows } = await cluster.db.query(
    `SELECT split_part(application_name, ' ', 1) AS name FROM pg_stat_activity AS a
      WHERE wait_event = 'SyncRep' AND usename = 'pva_api'
        AND (application_name LIKE 'api (%'
             OR EXISTS (SELECT FROM pg_locks AS l WHERE l.pid = a.pid AND locktype = 'advisory'))`,
  );
  return rows.map(({ name }) => name);
}

const interrupt = (how: "cancel" | "terminate") => () =>
  cluster.db.query(`SELECT pg_${how}_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);

it.each([
  ["its host restarts", () => postgres.kill().then(() => postgres.start())],
  ["one of its processes is killed", () => postgres.killOne(new SeededRandom(1))],
  ["the waiting commits are cancelled", interrupt("cancel")],
  ["the waiting sessions are ended", interrupt("terminate")],
])("Postgres without its standby loses no confirmed redemption if %s before the promotion", async (_how, crash) => {
  const all = newOrders(4);
  const ids = all.map(({ id }) => id);
  postgres.cutOffStandby();
  const asked = redeemAll(all, api);
  // Waits until the primary shows a redemption that the standby lacks. The sweeper's commit may wait alone at first.
  await until(async () => {
    if ((await waitingCommits().catch((): string[] => [])).includes("worker")) await crash();
    return (await countRedemptions(ids).catch(() => 0)) > 0;
  });
  let isAnswered = false;
  const repeated = [api, otherApi].map((at) => redeemAll(all, at).finally(() => (isAnswered = true)));
  await until(async () => isAnswered || (await waitingCommits()).includes("api"));
  await postgres.promoteStandby();
  await postgres.start();
  const answers = (await Promise.all([asked, ...repeated])).flat();
  const confirmed = ids.filter((_, at) => answers.some(({ status }, n) => n % ids.length === at && status === 200));
  expect(await countRedemptions(confirmed)).toBe(confirmed.length);
});

const STEPS: [string, number][] = [
  ["goes on", 0],
  ["steps back by 5 s", -5_000],
  ["steps ahead by 5 s", 5_000],
];

it.each(
  STEPS.slice(0, HAS_CLOCK ? 3 : 1),
)("a worker frozen with a job redeems nothing after a refusal, while the database's clock %s", async (_how, toMs) => {
  const wire = await openTcpProxy(postgres.url);
  await Promise.all(cluster.workers.map((worker) => worker.kill()));
  const only = cluster.addWorker({ DATABASE_URL: serviceUrl(wire.url) });
  only.start();
  await untilRedeems(api);
  // The worker has taken the jobs and sent their first statement, but can no longer reach Postgres.
  wire.jam();
  const all = newOrders(20);
  const asked = redeemAll(all, api);
  await until(async () => {
    const jobs = await countRedeemJobs();
    return jobs.all >= 20 && jobs.waiting === 0;
  });
  only.freeze();
  const answers = await asked;
  const denied = all.filter((_, at) => answers[at]?.body.code === "redeem_timeout").map(({ id }) => id);
  expect(denied.length).toBeGreaterThan(0);
  if (toMs !== 0) await postgres.clock.set(toMs);
  only.thaw();
  wire.mend();
  await until(async () => (await countRedeemJobs()).all === 0);
  expect(await countRedemptions(denied)).toBe(0);
  await only.kill();
  cluster.workers.splice(cluster.workers.indexOf(only), 1);
  await wire.close();
});

it.skipIf(!HAS_CLOCK)(
  "redemptions have the right time again after the database's clock was an hour ahead",
  async () => {
    await postgres.clock.set(HOUR_MS);
    await until(async () => (await get(api, "/readyz")).body?.clockAheadSeconds > 0);
    expect((await get(api, "/partner/redemptions")).status).toBe(200);
    await postgres.clock.set(0);
    const { body } = await redeem(newOrder(), api);
    expect(Math.abs(Date.parse(body.redeemedAt) - Date.now())).toBeLessThan(20_000);
  },
);

/** Redeems, and expects the host's time in the answer. */
async function redeemRightly(order: Order): Promise<void> {
  const { status, body } = await redeem(order, api);
  expect({ status, code: body.code }).toEqual({ status: 200, code: undefined });
  expect(Math.abs(Date.parse(body.redeemedAt) - Date.now())).toBeLessThan(20_000);
}

it.skipIf(!HAS_CLOCK)(
  "nothing expires and no call is refused while the database's clock is 400 days ahead",
  async () => {
    await redeemRightly(newOrder());
    await postgres.clock.set(JUMP_MS);
    // Redeems at once, when perhaps no process has read the changed clock yet.
    await redeemRightly(newOrder());
    await until(async () => (await get(api, "/readyz")).body?.clockAheadSeconds > 0);
    await Promise.all(cluster.workers.map((worker) => worker.kill()));
    await cluster.heal();
    await until(async () => {
      const { rows } = await cluster.db.query(
        "SELECT moved_at > now() - interval '1 day' AS swept FROM sweep_positions WHERE task = 'check_chains'",
      );
      return rows[0]?.swept;
    });
    await redeemRightly(newOrder());
    await postgres.clock.set(0);
    await redeemRightly(newOrder());
    const { rows } = await cluster.db.query("SELECT FROM voucher_events WHERE event_type = 'voucher.instance.expired'");
    expect(rows).toHaveLength(0);
  },
);

it.skipIf(!HAS_CLOCK)("an expired voucher is not redeemed while the database's clock is 400 days behind", async () => {
  const { db } = cluster;
  const { id, body } = newOrder();
  const { rows } = await db.query(
    "SELECT product_id FROM batches WHERE id = (SELECT batch_id FROM vouchers WHERE id = $1)",
    [id],
  );
  const validUntil = new Date(Date.now() + 2_000);
  const { vouchers } = await issueTestBatch(db, { productId: rows[0].product_id }, 1, { validUntil });
  await until(async () => {
    const closed = await db.query("SELECT closed_until > $1 AS is FROM redemptions_closed", [validUntil]);
    return closed.rows[0].is;
  });
  const expired = { body: { ...body, code: vouchers[0]?.code } };
  for (const offsetMs of [0, -JUMP_MS, 0]) {
    await postgres.clock.set(offsetMs);
    expect((await redeem(expired, api)).body.code).toBe("voucher_expired");
    await redeemRightly(newOrder());
  }
  expect((await get(api, "/readyz")).body).not.toHaveProperty("clockAheadSeconds");
});

it.skipIf(!HAS_CLOCK)(
  "the list of faults reports no stopped sweeper while the database's clock is set back or ahead",
  async () => {
    const faults = async (): Promise<string[]> => {
      const response = await fetch(`${api.url}/ops/overview.json`, { headers: basic(OPS_TOKEN) });
      return (await response.json()).attention.map(({ runbook }: { runbook: string }) => runbook);
    };
    const { id } = newOrder();
    await faults();
    await postgres.clock.set(-HOUR_MS);
    await until(async () => {
      // Records the chain as broken again and again, because the sweeper sometimes checks it and finds it intact.
      await cluster.db.query(markBrokenChains([id]));
      return (await faults()).includes("VouchersChainBroken");
    });
    await cluster.db.query("DELETE FROM broken_chains");
    await postgres.clock.set(HOUR_MS);
    const found = await until(async () => {
      const listed = await faults();
      return listed.includes("VouchersClockAhead") && !listed.includes("VouchersChainBroken") && listed;
    });
    expect(found).not.toContain("VouchersSweeperStopped");
    await postgres.clock.set(0);
  },
);

/** The message that a process logs when it refuses to use its server. */
const REFUSED = "the database server is refused";

/** Counts how often each of the original's processes has logged `REFUSED`, including in earlier tests. */
const countRefusals = () => processesOf(cluster).map((process) => process.readLog().split(REFUSED).length - 1);

it("processes on a promoted copy answer 503 and change nothing, while the original continues", async () => {
  for (const each of cluster.apis) await untilRedeems(each);
  const refusals = countRefusals();
  const { id, body } = newOrder();
  const copy = await cluster.startHotCopy();
  for (const process of [copy.worker, copy.api.process]) process.start();
  await untilStarted(async () => copy.worker.hasLogged(REFUSED) && copy.api.process.hasLogged(REFUSED));
  await copy.promote();
  const { status, body: unready } = await get(copy.api, "/readyz");
  expect({ status, unready: JSON.stringify(unready) }).toEqual({
    status: 503,
    unready: expect.stringMatching(/makes marks: 127\.0\.0\.1:\d+ on timeline \d+\./),
  });
  expect(await redeem({ body }, copy.api)).toMatchObject({ status: 503 });
  // Kills the original's workers, so that only the copy's worker could run the next jobs.
  await Promise.all(cluster.workers.map((worker) => worker.kill()));
  const answers = await redeemAll(newOrders(10), api);
  expect(answers.map(({ status }) => status)).not.toContain(200);
  await cluster.heal();
  for (const each of cluster.apis) await untilRedeems(each);
  expect(await redeem({ body: { ...body, externalRef: `another ${body.externalRef}` } }, api)).toMatchObject({
    status: 200,
    body: { alreadyConfirmed: false, voucherInstanceId: id },
  });
  expect(countRefusals()).toEqual(refusals);
  expect(await copy.stop()).toBe(0);
});

async function timed(work: Promise<Answer>): Promise<Answer & { tookMs: number }> {
  const startedAt = performance.now();
  return { ...(await work), tookMs: performance.now() - startedAt };
}

function expectRetryLater(answer: Answer, code: string): void {
  expect({ status: answer.status, code: answer.body?.code }).toEqual({ status: 503, code });
  expect(Number(answer.headers["retry-after"])).toBeGreaterThanOrEqual(1);
}
