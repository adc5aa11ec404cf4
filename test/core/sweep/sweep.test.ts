import { beforeAll, expect, it, onTestFinished, vi } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { countBrokenChains } from "../../../src/core/chain/db/broken-chains.ts";
import { sealQueue } from "../../../src/core/chain/seal-job.ts";
import { checkChains } from "../../../src/core/sweep/check-chains.ts";
import type { SweepReport } from "../../../src/core/sweep/report.ts";
import { sweepQueue } from "../../../src/core/sweep/report.ts";
import { isIdle, runPass } from "../../../src/core/sweep/sweep.ts";
import { firstIdAt } from "../../../src/core/voucher/ids.ts";
import { CONFIG_PARTS } from "../../../src/open/config-parts.ts";
import { sweep } from "../../../src/open/open-sweep.ts";
import { openLogger } from "../../../src/platform/logger.ts";
import { CLOSE_MAX_MS } from "../../../src/platform/process.ts";
import { Schedule } from "../../../src/platform/queues/schedule.ts";
import { listShardsOf } from "../../../src/platform/queues/shards.ts";
import { inSeconds, makeContract, newUser } from "../../support/marketplace.ts";
import { besideTransaction, bypassTriggers, untilPast, whileLocked } from "../../support/outside-transaction.ts";
import { appendPending } from "../../support/pending-events.ts";
import { findBatchOf, readRecorded, readReservation } from "../../support/recorded.ts";
import { countJobs } from "../../support/redeem-jobs.ts";
import { monitorRedis } from "../../support/redis-monitor.ts";
import { sealVoucher } from "../../support/seal-voucher.ts";
import { openTestServers } from "../../support/servers.ts";
import { openWorkerContext, startWorkers, testConfig, type WorkerContext } from "../../support/service.ts";
import { issueVouchers, makePartner, provisioning } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

const { servers, db, partner, issue, tills, rival, contexts } = useService({
  // The reservations of the second API last one second.
  apis: [{ RESERVATION_SECONDS: "600" }, { RESERVATION_SECONDS: "1" }],
  workers: [],
  contexts: 1,
});
const [till, briefTill] = tills;
let ctx: WorkerContext;

beforeAll(async () => {
  [ctx] = contexts;
  await untilStarted(() => ctx.redis.status === "ready");
});

it("a sweep changes nothing if nothing has expired or is overdue", async () => {
  await sweepRound();
  const { items, chainsBroken } = await sweepRound();
  expect(Object.keys(items)).toEqual(Object.keys(ctx.sweepTasks));
  expect([...Object.entries(items), ["chainsBroken", chainsBroken]].filter(([, count]) => count !== 0)).toEqual([]);
});

it("a sweep with a failing task runs the other tasks and reports the failure", async () => {
  const { ticket } = await makeOverdue();
  const finishedJobs = Object.create(ctx.finishedJobs, {
    removeOld: { value: () => Promise.reject(new Error("Redis is unavailable")) },
  });
  expect((await sweep({ ...ctx, finishedJobs })).failures).toEqual({ removeJobs: "Redis is unavailable" });
  expect(await stateOf(ticket)).toBe("Expired");
});

it("a sweep ends by its deadline, and each task gets a share of the time", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const startedAt = performance.now();
  const partsMs: number[] = [];
  const hungry = async (_ctx: WorkerContext, untilMs: number) => {
    partsMs.push(untilMs - performance.now());
    vi.advanceTimersByTime(Math.max(0, untilMs - performance.now()));
    return 0;
  };
  const tasks = Object.fromEntries(Array.from({ length: 14 }, (_, n) => [`task ${n}`, hungry]));
  await runPass(ctx, tasks, {});
  expect(performance.now() - startedAt).toBeLessThanOrEqual(CLOSE_MAX_MS / 2 + 500);
  expect(partsMs[0]).toBe(2_000);
  expect(Math.min(...partsMs)).toBeGreaterThanOrEqual(250);
});

it("a closing process starts no further task of its sweep", async () => {
  const closing = new AbortController();
  const begun: string[] = [];
  const note = (name: string) => async () => begun.push(name);
  const close = async () => {
    closing.abort();
    return 1;
  };
  const { failures } = await runPass(
    { ...ctx, endRuns: closing.signal },
    { one: note("one"), close, two: note("two") },
    {},
  );
  expect({ failures, begun }).toEqual({ failures: {}, begun: ["one"] });
});

it("a sweep sets overdue reservations to Expired, with the reservation's own end as the time", async () => {
  const { ticket, expiresAt } = await makeOverdue();
  expect((await sweepRound()).items.expireReservations).toBe(1);
  expect(await readReservation(db, ticket)).toMatchObject({ state: "Expired", endedAt: expiresAt });
});

it("an overdue reservation of a locked voucher waits for the next sweep, and delays no other reservation", async () => {
  const locked = await makeOverdue();
  const free = await makeOverdue();
  await whileLocked(db, [locked.id], async () => {
    expect((await sweep(ctx)).items.expireReservations).toBe(1);
    expect([await stateOf(locked.ticket), await stateOf(free.ticket)]).toEqual(["Live", "Expired"]);
  });
  expect((await sweep(ctx)).items.expireReservations).toBe(1);
  expect(await stateOf(locked.ticket)).toBe("Expired");
});

it("two simultaneous sweeps end each overdue reservation once", async () => {
  const overdue = await Promise.all(Array.from({ length: 20 }, makeOverdue));
  const [one, other] = await Promise.all([sweep(ctx), sweep(ctx)]);
  const passes = [one, other, await sweep(ctx)];
  expect(passes.reduce((sum, { items }) => sum + items.expireReservations, 0)).toBe(overdue.length);
});

it("a sweep ends no live reservation, and changes no lease in Redis", async () => {
  const [held, lost] = [await makeHeld(), await makeHeld()];
  const orphan = servers.leaseKey("vch_orphan");
  await servers.redis.del(servers.leaseKey(lost.id));
  await servers.redis.set(orphan, "rsv_orphan key", "PX", 600_000);
  await sweepRound();
  expect([await stateOf(held.ticket), await stateOf(lost.ticket)]).toEqual(["Live", "Live"]);
  const keys = [servers.leaseKey(held.id), servers.leaseKey(lost.id), orphan];
  expect(await Promise.all(keys.map((key) => servers.redis.exists(key)))).toEqual([1, 0, 1]);
  // The reservation refuses another key even without its lease.
  expect(await rival.reserve(lost.code)).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
});

const past = () => new Date(Date.now() - 1_000);
const expiredEvents = async (voucherId: string) =>
  (await readRecorded(db, voucherId)).events.filter(({ eventType }) => eventType === "voucher.instance.expired");

it("a sweep adds one sealed expired event to each expired voucher, whose status was Expired even before", async () => {
  const validUntil = past();
  const { id, code } = await issue({ validUntil });
  const read = async () => (await till.lookUp(code)).body.voucher.status;
  expect(await read()).toBe("Expired");
  expect((await sweepRound()).items.recordExpiries).toBe(1);
  const nonce = expect.stringMatching(/^[0-9a-f]{32}$/);
  expect(await expiredEvents(id)).toEqual([
    {
      sequence: 2,
      eventType: "voucher.instance.expired",
      sealStatus: "Sealed",
      data: { nonce, voucherCode: code, serial: 1, validUntil: validUntil.toISOString() },
    },
  ]);
  expect(await read()).toBe("Expired");
  expect((await till.events(code)).body.events[1]).toMatchObject({ code: "VCH006", actorConnectedId: null });
});

it("many simultaneous sweeps record each expiry once, without a seal job for each", async () => {
  const vouchers = await issueVouchers(db, partner, 520, { validUntil: past() });
  const jobs = await countJobs(servers, "seal");
  let recorded = 0;
  while (recorded < vouchers.length) {
    for (const { items, failures } of await Promise.all([sweep(ctx), sweep(ctx), sweep(ctx)])) {
      expect(failures).toEqual({});
      recorded += items.recordExpiries;
    }
  }
  expect(recorded).toBe(vouchers.length);
  const { rows } = await db.query(
    `SELECT count(*)::int AS n FROM voucher_events
      WHERE voucher_id = ANY ($1) AND event_type = 'voucher.instance.expired'`,
    [vouchers.map(({ id }) => id)],
  );
  expect(rows[0].n).toBe(vouchers.length);
  expect(await countJobs(servers, "seal")).toBe(jobs);
});

it("a sweep leaves the status of redeemed and voided vouchers unchanged", async () => {
  const [redeemed, voided, left] = (await issueVouchers(db, partner, 3)) as [
    IssuedVoucher,
    IssuedVoucher,
    IssuedVoucher,
  ];
  const workers = await startWorkers(servers);
  expect((await till.redeem({ code: redeemed.code, externalRef: "before-the-end" })).status).toBe(200);
  await workers.close();
  await voidVoucher(provisioning(db), partner.organizationId, voided.code, null);
  const batchId = await findBatchOf(db, left.id);
  await db.query("UPDATE batches SET valid_until = now() - interval '1 second' WHERE id = $1", [batchId]);
  expect((await sweepRound()).items.recordExpiries).toBe(1);
  expect([await expiredEvents(redeemed.id), await expiredEvents(voided.id)]).toEqual([[], []]);
  expect(await expiredEvents(left.id)).toHaveLength(1);
});

it("a sweep records the expiry of a voucher that was locked in the previous sweep", async () => {
  const vouchers = await issueVouchers(db, partner, 5, { validUntil: past() });
  const locked = vouchers[2]?.id ?? "";
  await whileLocked(db, [locked], async () => {
    expect((await sweep(ctx)).items.recordExpiries).toBe(4);
    expect((await sweep(ctx)).items.recordExpiries).toBe(0);
    expect(await expiredEvents(locked)).toEqual([]);
  });
  expect((await sweep(ctx)).items.recordExpiries).toBe(1);
  for (const { id } of vouchers) expect(await expiredEvents(id)).toHaveLength(1);
});

it("a sweep records a batch's expiries even if a chain has an event after the voucher's last sequence", async () => {
  const vouchers = await issueVouchers(db, partner, 3, { validUntil: past() });
  const [damaged, ...others] = vouchers.map(({ id }) => id) as [string, string, string];
  await db.query(
    `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
     VALUES (now(), 2, $1, 'Pending', 'voucher.instance.voided', '{}')`,
    [damaged],
  );
  expect(await sweep(ctx)).toMatchObject({ items: { recordExpiries: 2 }, failures: {} });
  for (const id of others) expect(await expiredEvents(id)).toHaveLength(1);
  const { rows } = await db.query(
    "SELECT expiry_recorded_to AS serial FROM batches JOIN vouchers AS v ON v.batch_id = batches.id WHERE v.id = $1",
    [damaged],
  );
  expect(rows).toEqual([{ serial: 3 }]);
  await bypassTriggers(db, "DELETE FROM voucher_events WHERE voucher_id = $1 AND sequence = 2", [damaged]);
});

it("a sweep seals an expired voucher's Pending events before the expired event", async () => {
  const validUntil = new Date(Date.now() + 1_000);
  const { id } = await issue({ validUntil });
  await db.query(
    `WITH counted AS (UPDATE vouchers SET last_sequence = 2 WHERE id = $1 RETURNING id)
     INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
     SELECT now(), 2, id, 'Pending', 'voucher.instance.claimed', '{"nonce":"00"}' FROM counted`,
    [id],
  );
  await untilPast(db, validUntil);
  await sweep(ctx);
  const { events } = await readRecorded(db, id);
  expect(events.map(({ eventType, sealStatus }) => `${eventType} ${sealStatus}`)).toEqual([
    "voucher.instance.issued Sealed",
    "voucher.instance.claimed Sealed",
    "voucher.instance.expired Sealed",
  ]);
});

const statusOf = async (id: string) =>
  (await db.query("SELECT status, changed_at > ends_at AS after FROM referrer_contracts WHERE id = $1", [id])).rows[0];
const contract = (...how: [status?: "Offered" | "Active" | "Ended" | "Declined", endsAt?: Date | null]) =>
  makeContract(db, partner.brandId, newUser(), ...how);

it("a sweep sets an overdue referrer contract to Ended once, after which a new contract is possible", async () => {
  const user = newUser();
  const over = await makeContract(db, partner.brandId, user, "Active", inSeconds(-1));
  const others = [
    [await contract("Active", inSeconds(600)), "Active"],
    [await contract("Active"), "Active"],
    [await contract("Offered", inSeconds(-1)), "Offered"],
    [await contract("Declined", inSeconds(-1)), "Declined"],
  ] as const;
  expect(await sweep(ctx)).toMatchObject({ items: { endContracts: 1 }, failures: {} });
  expect(await statusOf(over)).toEqual({ status: "Ended", after: true });
  for (const [id, status] of others) expect(await statusOf(id)).toMatchObject({ status });
  expect((await sweep(ctx)).items.endContracts).toBe(0);
  await makeContract(db, partner.brandId, user, "Active");
});

it("simultaneous sweeps end each overdue referrer contract once, up to a maximum per sweep", async () => {
  const before = (await sweep(ctx)).items.endContracts;
  expect(before).toBe(0);
  await db.query(
    `INSERT INTO referrer_contracts (id, brand_id, user_id, ends_at)
     SELECT 'ctr_many_' || n, $1, 'many-' || n, now() - interval '1 second' FROM generate_series(1, 1500) AS n`,
    [partner.brandId],
  );
  await db.query("UPDATE referrer_contracts SET status = 'Active' WHERE id LIKE 'ctr_many_%'");
  const passes = await Promise.all([sweep(ctx), sweep(ctx)]);
  const { items } = await sweep(ctx);
  expect([...passes, { items }].reduce((sum, pass) => sum + Number(pass.items.endContracts), 0)).toBe(1_500);
});

it("a locked overdue referrer contract waits for the next sweep, and delays no other contract", async () => {
  const [locked, free] = [await contract("Active", inSeconds(-1)), await contract("Active", inSeconds(-1))];
  await besideTransaction(db, async (outside) => {
    await outside.query("SELECT 1 FROM referrer_contracts WHERE id = $1 FOR UPDATE", [locked]);
    expect((await sweep(ctx)).items.endContracts).toBe(1);
    expect(await statusOf(free)).toMatchObject({ status: "Ended" });
  });
  expect((await sweep(ctx)).items.endContracts).toBe(1);
  expect(await statusOf(locked)).toMatchObject({ status: "Ended" });
});

/** Gives each voucher a Pending event that is six seconds old. */
async function claimEarlier(vouchers: readonly IssuedVoucher[]): Promise<void> {
  for (const { id } of vouchers) await appendPending(db, id, 1);
  await bypassTriggers(
    db,
    `UPDATE voucher_events SET occurred_at = now() - interval '6 seconds'
      WHERE voucher_id = ANY ($1) AND seal_status = 'Pending'`,
    [vouchers.map(({ id }) => id)],
  );
}

it("a voucher with an overdue Pending event gets one seal job, which seals the event", async () => {
  const { rows } = await db.query("SELECT voucher_id FROM voucher_events WHERE seal_status = 'Pending'");
  for (const { voucher_id } of rows) await sealVoucher(ctx, voucher_id);
  const [late, recent] = (await issueVouchers(db, partner, 2)) as [IssuedVoucher, IssuedVoucher];
  await claimEarlier([late]);
  await appendPending(db, recent.id, 1);
  expect((await sweep(ctx)).items.requestSeals).toBe(1);
  expect((await readRecorded(db, recent.id)).sealedSequence).toBe(1);
  // The second request adds no job, because the job of the first is still in the queue.
  await sweep(ctx);
  const waiting = await servers.redis.lrange(`${servers.shardOf(late.id).prefix}:seal:wait`, "0", "-1");
  expect(waiting.filter((jobId) => jobId.startsWith(late.id))).toHaveLength(1);
  const workers = await startWorkers(servers);
  await until(async () => (await readRecorded(db, late.id)).sealedSequence === 2);
  await workers.close();
  await sealVoucher(ctx, recent.id);
});

it("overdue Pending events get seal jobs only while the queue has room", async () => {
  // With this number of vouchers, three of them are in one shard.
  const issued = await issueVouchers(db, partner, 2 * servers.shards.length + 1);
  const byShard = Map.groupBy(issued, ({ id }) => servers.shardOf(id).prefix);
  const [prefix, crowd] = [...byShard].find(([, { length }]) => length >= 3) as [string, typeof issued];
  const vouchers = crowd.slice(0, 3);
  await claimEarlier(vouchers);
  const wait = `${prefix}:${sealQueue.name}:wait`;
  const waitingMax = Math.ceil(sealQueue.waitingMax / servers.shards.length);
  await servers.redis.rpush(wait, ...Array.from({ length: waitingMax - 2 }, (_, n) => `job-${n}`));
  expect((await sweep(ctx)).items.requestSeals).toBe(2);
  expect((await sweep(ctx)).items.requestSeals).toBe(0);
  expect(await servers.redis.llen(wait)).toBe(waitingMax);
  await servers.redis.del(wait);
  for (const { id } of vouchers) await sealVoucher(ctx, id);
});

/** Opens a worker context on its own database with this number of vouchers, until the end of the test. */
async function openOwn(count: number, env: Record<string, string> = {}) {
  const own = await openTestServers();
  const other = openWorkerContext(testConfig(own, env));
  own.onClose(() => other.close());
  await other.deployment.ready();
  onTestFinished(() => own.close());
  return { own, other, vouchers: await issueVouchers(own.db, await makePartner(own.db), count) };
}

it("sweeps verify all chains one after another, and a broken chain stays recorded until it is intact", async () => {
  const { own, other, vouchers } = await openOwn(250);
  await own.db.query("ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload");
  const broken = vouchers[123]?.id ?? "";
  await bypassTriggers(own.db, "UPDATE voucher_events SET payload = payload || ' ' WHERE voucher_id = $1", [broken]);
  const checkAll = async () => {
    const passes = [
      await checkChains(other, Number.POSITIVE_INFINITY),
      await checkChains(other, Number.POSITIVE_INFINITY),
      await checkChains(other, Number.POSITIVE_INFINITY),
    ];
    return {
      checked: passes.reduce((sum, pass) => sum + pass.vouchers, 0),
      found: passes.flatMap((pass) => pass.broken.map(({ voucherId }) => voucherId)),
      known: (await own.db.query("SELECT * FROM broken_chains")).rows,
    };
  };
  const first = await checkAll();
  const known = [{ found_at: expect.any(Date), whole_at: null, voucher_id: broken }];
  expect(first).toEqual({ checked: 250, found: [broken], known });
  expect(await checkAll()).toEqual(first);
  await bypassTriggers(own.db, "UPDATE voucher_events SET payload = rtrim(payload) WHERE voucher_id = $1", [broken]);
  expect((await checkAll()).known).toEqual([{ ...first.known[0], whole_at: expect.any(Date) }]);
  expect(await countBrokenChains(own.db, 10)).toBe(0);
});

it("a sweep verifies more chains if verifying all chains would otherwise take too long", async () => {
  const { own, other } = await openOwn(400, { CHAIN_CHECK_HOURS: "1" });
  await own.db.query("ANALYZE vouchers");
  await checkChains(other, Number.POSITIVE_INFINITY);
  await own.db.query("UPDATE sweep_positions SET moved_at = moved_at - interval '30 minutes'");
  const { vouchers } = await checkChains(other, Number.POSITIVE_INFINITY);
  expect(vouchers).toBeGreaterThanOrEqual(200);
  expect(vouchers).toBeLessThan(220);
});

const env = { WORKER_QUEUES: "sweep", SWEEP_INTERVAL_MS: "300" };
const added = async () => Number(await servers.redis.get(`${servers.queuePrefix}:sweep:id`));
const finished = () => servers.redis.zcard(`${servers.queuePrefix}:sweep:completed`);

it("all workers share one schedule of sweeps, and restore the schedule after Redis has lost it", async () => {
  // The measured time begins before the first worker's start, because on a busy machine the others start several
  // intervals later.
  const startedAt = performance.now();
  const workers = await Promise.all(Array.from({ length: 3 }, () => startWorkers(servers, env)));
  await until(async () => (await finished()) >= 6);
  // All workers together sweep once per interval of 300 ms.
  expect(await added()).toBeLessThanOrEqual(Math.ceil((performance.now() - startedAt) / 300) + 1);
  await servers.redis.flushdb();
  await until(async () => (await finished()) >= 2);
  await Promise.all(workers.map((worker) => worker.close()));
  const completed = await servers.redis.zrange(`${servers.queuePrefix}:sweep:completed`, "0", "0");
  const [returned] = await servers.redis.hmget(`${servers.queuePrefix}:sweep:${completed[0]}`, "returnvalue");
  expect(JSON.parse(returned ?? "null")).toMatchObject({
    items: { expireReservations: expect.any(Number) },
    failures: {},
  });
});

it("another worker continues the schedule of sweeps when the first worker closes", async () => {
  await servers.redis.flushdb();
  const first = await startWorkers(servers, env);
  await until(async () => (await finished()) >= 1);
  const second = await startWorkers(servers, env);
  await until(async () => (await finished()) >= 3);
  await first.close();
  const before = await added();
  await until(async () => (await added()) > before).finally(() => second.close());
});

it("the schedule of sweeps adds no sweep while another one waits", async () => {
  await servers.redis.flushdb();
  const at = { redisUrl: servers.redisUrl, shards: servers.shards.length };
  const schedule = new Schedule(sweepQueue, ctx.deployment, at, 20, openLogger("silent", "test"));
  await until(async () => (await added()) === 1);
  const monitor = await monitorRedis(servers.redisUrl);
  await until(async () => (await monitor.count(`${servers.queuePrefix}:sweep:ticks`)) >= 15);
  monitor.close();
  expect(await countJobs(servers, "sweep")).toBe(1);
  schedule.close();
});

/** Writes reservations of a voucher that started this many days ago and soon ended. Returns their tickets. */
async function writeReservations(
  voucherId: string,
  state: string,
  daysAgo: number,
  { count = 1, lasted = "1 second" } = {},
): Promise<string[]> {
  const { rows } = await db.query("SELECT clock_timestamp() - make_interval(days => $1) AS at", [daysAgo]);
  const first = firstIdAt("rsv", rows[0].at);
  const tickets = Array.from({ length: count }, (_, n) => first.slice(0, -8) + String(n).padStart(8, "0"));
  await db.query(
    `INSERT INTO reservations
       (started_at, expires_at, ended_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
     SELECT $1, $1::timestamptz + greatest(interval '15 minutes', $6::interval),
            CASE WHEN $4 <> 'Live' THEN $1::timestamptz + $6::interval END, t, $2, $3, 'key', $4, 'secret'
       FROM unnest($5::text[]) AS t`,
    [rows[0].at, voucherId, partner.organizationId, state, tickets, lasted],
  );
  return tickets;
}

it("old reservations that ended unused are deleted faster than callers can add new ones", async () => {
  const { id, code } = await issue();
  const { ticket } = (await till.reserve(code)).body;
  const worker = await startWorkers(servers);
  expect((await till.redeem({ ticket, externalRef: "order-kept" })).status).toBe(200);
  await worker.close();
  const other = await issue();
  // More rows than three keys at their rate limit write between two passes. One pass must delete all.
  const released = await writeReservations(other.id, "Released", 92, { count: 1_999 });
  const [expired] = await writeReservations(other.id, "Expired", 93);
  const kept = [
    ...(await writeReservations(other.id, "Consumed", 94)),
    ...(await writeReservations(other.id, "Released", 89)),
    ...(await writeReservations(other.id, "Expired", 88)),
    ticket,
  ];
  expect((await till.lookUp(String(expired))).status).toBe(200);
  expect(await sweep(ctx)).toMatchObject({ items: { removeReservations: released.length + 1 }, failures: {} });
  const left = await db.query("SELECT ticket FROM reservations WHERE voucher_id = ANY ($1) ORDER BY ticket", [
    [id, other.id],
  ]);
  expect(left.rows.map((row) => row.ticket)).toEqual(kept.toSorted());
  const unknown = await till.lookUp("rsv_unknown");
  const gone = await till.lookUp(String(expired));
  expect([gone.status, gone.body.error]).toEqual([404, unknown.body.error]);
  expect((await till.redeem({ ticket: String(expired), externalRef: "order-late" })).status).toBe(404);
  expect((await till.release(String(expired))).body).toMatchObject({ released: false });
  expect((await till.redeem({ ticket, externalRef: "order-kept" })).body).toMatchObject({ alreadyConfirmed: true });
});

it("a long reservation is deleted after its retention time, although an earlier sweep kept it", async () => {
  const { id } = await issue();
  const [long] = await writeReservations(id, "Released", 90, { lasted: "23 hours" });
  expect(await sweep(ctx)).toMatchObject({ failures: {} });
  expect((await till.lookUp(String(long))).status).toBe(200);
  const config = { ...ctx.config, reservationRetentionMs: 88 * 86_400_000 };
  expect(await sweep({ ...ctx, config })).toMatchObject({ failures: {} });
  expect((await till.lookUp(String(long))).status).toBe(404);
});

it("finished jobs in every queue and shard are removed after a set time, even if no other job ends", async () => {
  const former = openWorkerContext(testConfig(servers, { QUEUE_SHARDS: "3,2" }));
  onTestFinished(() => former.close());
  await untilStarted(() => former.redis.status === "ready");
  const sets = CONFIG_PARTS.queues.flatMap(({ keep, keepFailed, ...definition }) =>
    listShardsOf(definition, servers.deploymentId, [3, 2]).flatMap(({ prefix }) => [
      { key: `${prefix}:${definition.name}`, state: "completed", keptMs: keep.age * 1_000 },
      { key: `${prefix}:${definition.name}`, state: "failed", keptMs: keepFailed.age * 1_000 },
    ]),
  );
  const finish = async (key: string, state: string, id: string, finishedOn: number) => {
    await servers.redis.hset(`${key}:${id}`, { data: "{}", returnvalue: '{"redeemCode":"SECRET"}', finishedOn });
    await servers.redis.zadd(`${key}:${state}`, finishedOn, id);
  };
  for (const { key, state, keptMs } of sets) {
    await finish(key, state, `old-${state}`, Date.now() - keptMs - 1_000);
    await finish(key, state, `new-${state}`, Date.now() - keptMs + 60_000);
  }
  // `broken` is a shard whose server fails.
  const [broken, ...answering] = sets as [(typeof sets)[0], ...typeof sets];
  await servers.redis.rename(`${broken.key}:${broken.state}`, `${broken.key}:away`);
  await servers.redis.set(`${broken.key}:${broken.state}`, "not a set");
  expect((await sweep(former)).failures).toEqual({ removeJobs: expect.stringContaining("WRONGTYPE") });
  const left = async (each: typeof sets) =>
    (await Promise.all(each.map(({ key, state }) => servers.redis.zrange(`${key}:${state}`, "0", "-1")))).flat();
  expect((await left(answering)).filter((id) => id.startsWith("old"))).toEqual([]);
  await servers.redis.rename(`${broken.key}:away`, `${broken.key}:${broken.state}`);
  expect(await sweep(former)).toMatchObject({ items: { removeJobs: 1 }, failures: {} });
  expect(await left(sets)).toEqual(sets.map(({ state }) => `new-${state}`));
  for (const { key, state } of sets) expect(await servers.redis.exists(`${key}:old-${state}`)).toBe(0);
});

it("a sweep logs at level info only after a change or a fault", async () => {
  const tasks = Object.keys(ctx.sweepTasks);
  const quiet: SweepReport = {
    items: Object.fromEntries(tasks.map((task) => [task, 0])),
    chainsChecked: 50,
    chainsBroken: 0,
    failures: {},
    durationMs: 3,
  };
  expect(isIdle(quiet)).toBe(true);
  for (const task of tasks) expect(isIdle({ ...quiet, items: { ...quiet.items, [task]: 1 } }), task).toBe(false);
  expect(isIdle({ ...quiet, chainsBroken: 1 })).toBe(false);
  expect(isIdle({ ...quiet, failures: { checkChains: "no connection" } })).toBe(false);
});

/** Runs two passes, because the first may start in the middle of the rows, and returns their sums. */
async function sweepRound(): ReturnType<typeof sweep> {
  const first = await sweep(ctx);
  const second = await sweep(ctx);
  expect([first.failures, second.failures]).toEqual([{}, {}]);
  const items = { ...first.items };
  for (const [task, count] of Object.entries(second.items)) items[task] = (first.items[task] ?? 0) + count;
  return { ...first, items, chainsBroken: first.chainsBroken + second.chainsBroken };
}

/** A reservation past its end. */
async function makeOverdue(): Promise<{ id: string; code: string; ticket: string; expiresAt: Date }> {
  const { id, code } = await issue();
  const { ticket, expiresAt } = (await briefTill.reserve(code)).body;
  await untilPast(db, new Date(expiresAt));
  return { id, code, ticket, expiresAt: new Date(expiresAt) };
}

async function makeHeld(): Promise<{ id: string; code: string; ticket: string; expiresAt: string }> {
  const { id, code } = await issue();
  return { id, code, ...(await till.reserve(code)).body };
}

const stateOf = async (ticket: string) => (await readReservation(db, ticket)).state;
