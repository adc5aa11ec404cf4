import { Queue } from "bullmq";
import { expect, it, onTestFinished, vi } from "vitest";
import { readProcesses } from "../../../src/core/processes/db/processes.ts";
import { readCounts, refusalsIn, timesUntil } from "../../../src/core/processes/minute-counts.ts";
import { ProcessRecord } from "../../../src/core/processes/process-record.ts";
import { Canary, FRESH_MS, SILENT_MS } from "../../../src/core/redeem/canary.ts";
import type { RedeemReply } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { sweep } from "../../../src/open/open-sweep.ts";
import type { WaitResult } from "../../../src/platform/queues/awaited-queue.ts";
import { UNREADABLE_JOB } from "../../../src/platform/queues/job-envelope.ts";
import { shardOf } from "../../../src/platform/queues/shards.ts";
import { besideTransaction, untilWaiting } from "../../support/outside-transaction.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { api, db, servers, issue, partner, keys, till, contexts } = useService({ shards: 3, contexts: 1 });
const [worker] = contexts;

const canaryOf = (processId: string) => ({ voucherId: "canary-1", organizationId: "canary", processId });
const selfOf = async (id: string) => (await readProcesses(db)).find((one) => one.id === id);

it("each shard answers an API's canary jobs, which write only to the API's own row", async () => {
  const { canary, process } = api.ctx;
  canary.start();
  await until(async () => canary.read().latencyMs.p99 !== null && (await selfOf(process.id))?.canaryAt);
  const { shards, silentShards } = canary.read();
  expect({ shards: shards.length, silentShards }).toEqual({ shards: 3, silentShards: [] });
  for (const { prefix } of servers.shards) {
    const queue = new Queue("redeem", { prefix, connection: servers.redis, skipMetasUpdate: true });
    await until(async () => (await queue.getCompletedCount()) > 0);
    await queue.close();
  }
  const { rows } = await db.query("SELECT FROM redemptions");
  expect(rows).toEqual([]);
});

it("a canary job shares a transaction with concurrent redeem jobs, and changes none of their replies", async () => {
  const [{ id }, { process }] = [await issue(), api.ctx];
  const [redeemed, canary, refused] = await Promise.all([
    runRedeemJob(worker, newAttempt(id), redeemJob(partner, keys.till.id, id, "beside a canary")),
    runRedeemJob(worker, "canary-1", canaryOf(process.id)),
    runRedeemJob(worker, newAttempt(id), redeemJob(partner, keys.till.id, id, "too late")),
  ]);
  expect([redeemed, canary, refused].map(({ kind }) => kind)).toEqual(["redeemed", "canary", "refused"]);
  const { rows } = await db.query(
    "SELECT p.xmin = r.xmin AS same FROM processes AS p, redemptions AS r WHERE p.id = $1",
    [process.id],
  );
  expect(rows).toEqual([{ same: true }]);
});

it("a canary job whose row is locked gets the reply busy, and delays no redeem job", async () => {
  await besideTransaction(db, async (outside) => {
    await outside.query("SELECT FROM processes FOR UPDATE");
    const { id } = await issue();
    const replies = await Promise.all([
      runRedeemJob(worker, "canary-2", canaryOf(api.ctx.process.id)),
      runRedeemJob(worker, newAttempt(id), redeemJob(partner, keys.till.id, id, "unlocked")),
    ]);
    expect(replies.map(({ kind }) => kind)).toEqual(["busy", "redeemed"]);
  });
});

it.each([
  "redemptions",
  "voucher_events",
  "vouchers",
])("a canary job waits for a lock on the table %s, as redeem jobs do", async (table) => {
  const before = await selfOf(api.ctx.process.id);
  let answer: Promise<RedeemReply> | undefined;
  await besideTransaction(db, async (outside) => {
    await outside.query(`LOCK TABLE ${table} IN SHARE MODE`);
    answer = runRedeemJob(worker, "canary-3", canaryOf(api.ctx.process.id));
    await untilWaiting(db, 1, "worker");
    expect((await selfOf(api.ctx.process.id))?.canaryAt).toEqual(before?.canaryAt);
  });
  expect(await answer).toEqual({ kind: "canary" });
});

/** Opens canaries (an API's test jobs) that end as the test says, and whose clock the test moves. */
function openCanary(shards: number, answer: (shard: number) => WaitResult<RedeemReply>) {
  const added: object[] = [];
  const addAndWait = vi.fn(async (_id: string, data: { voucherId: string }, _waitMs: number, options?: object) => {
    added.push(options ?? {});
    return answer(shardOf(data.voucherId, shards));
  });
  const config = { queueShards: [shards] as [number], redeemWaitMs: 10_000 };
  const canary = new Canary({ config, redeemQueue: { addAndWait }, process: { id: "p" } });
  onTestFinished(() => canary.close());
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  canary.start();
  return { canary, added };
}

const ANSWERED: WaitResult<RedeemReply> = { kind: "reply", reply: { kind: "canary" }, queuedMs: 0, workedMs: 0 };
const NO_ANSWER: WaitResult<RedeemReply> = { kind: "unknown", cause: new Error("no reply within 10 s") };

it.each<[answer: string, silentMs: number, result: WaitResult<RedeemReply>]>([
  ["of a worker that has committed it", 0, ANSWERED],
  ["of a worker of release 0.1.0, which does not know it", 0, { kind: "unknown", cause: new Error(UNREADABLE_JOB) }],
  ["of a worker that could not commit it", SILENT_MS, { ...ANSWERED, reply: { kind: "busy" } }],
  ["that did not come", SILENT_MS, NO_ANSWER],
])("after a canary job's answer %s, the shard's silence is %i ms", async (_answer, silentMs, result) => {
  let isMended = false;
  const { canary, added } = openCanary(1, () => (isMended ? result : NO_ANSWER));
  vi.advanceTimersByTime(SILENT_MS);
  expect(canary.read().silentMs).toBe(SILENT_MS);
  isMended = true;
  const asked = added.length;
  // If the canary gets an answer, `silentMs` changes. Otherwise the next canary follows a second later.
  await until(() => added.length > asked + 1 || canary.read().silentMs !== SILENT_MS);
  expect(canary.read().silentMs).toBe(silentMs);
  // A worker of release 0.1.0 fails this job, which operators need not see.
  expect(added).toContainEqual({ removeOnFail: true });
});

it("a shard counts as silent only if other shards have answered canary jobs for some seconds", async () => {
  let isMended = false;
  const { canary, added } = openCanary(2, (shard) => (shard === 1 && isMended ? ANSWERED : NO_ANSWER));
  vi.advanceTimersByTime(20_000);
  expect(canary.read()).toMatchObject({ silentMs: 20_000, silentShards: [] });
  isMended = true;
  await until(() => added.length > 0 && canary.read().silentMs === 0);
  vi.advanceTimersByTime(FRESH_MS - 500);
  expect(canary.read().silentShards).toEqual([]);
  await until(() => canary.read().silentMs === 0);
  vi.advanceTimersByTime(500);
  expect(canary.read().silentShards).toEqual([0]);
});

it("an API reports no silent shard before its first canary job", () => {
  const config = { queueShards: [1] as [number], redeemWaitMs: 10_000 };
  const idle = new Canary({ config, redeemQueue: api.ctx.redeemQueue, process: { id: "p" } });
  expect(idle.read()).toMatchObject({ silentMs: 0, silentShards: [] });
});

it("a running process has a row with its queues and problem, and deletes the row when it ends", async () => {
  const { pool, deployment, log } = api.ctx;
  const record = new ProcessRecord({ pool, deployment, log }, "worker");
  record.serve("seal");
  record.tell("No answer from Redis.");
  const recorded = await until(async () => {
    const own = await selfOf(record.id);
    return own?.problem == null ? null : own;
  });
  expect(recorded).toMatchObject({ role: "worker", queues: ["seal"], isUp: true, problem: "No answer from Redis." });
  // The process may record itself again between the two statements.
  await until(async () => {
    await db.query("UPDATE processes SET seen_at = seen_at - interval '26 seconds' WHERE id = $1", [record.id]);
    return (await selfOf(record.id))?.isUp === false;
  });
  await record.close();
  expect(await selfOf(record.id)).toBeUndefined();
});

it("the sweeper deletes a process's row ten minutes after its last update", async () => {
  const insert = "INSERT INTO processes (id, role, host, pid, version, queues, busy, seen_at) VALUES";
  await db.query(`${insert} ('old', 'worker', 'h', 1, '0', '{}', 0, clock_timestamp() - interval '11 minutes')`);
  await sweep(worker);
  expect((await db.query("SELECT FROM processes WHERE id = 'old'")).rowCount).toBe(0);
});

it("refusals and answers are counted per minute over all processes", async () => {
  const { counts, redis, deployment } = api.ctx;
  await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "unknown" });
  counts.observe({ reportedAs: "decision", organizationId: partner.organizationId }, 409, 5);
  await until(async () => {
    await counts.send();
    const times = timesUntil(deployment.clock.steadyNow(), "minute", 2);
    const found = await readCounts(redis, deployment, "minute", times);
    const sum = (of: string | null) => found.reduce((total, minute) => total + refusalsIn(minute, of), 0);
    return sum(null) === 2 && sum(partner.organizationId) === 2 && sum("org_other") === 0;
  });
});
