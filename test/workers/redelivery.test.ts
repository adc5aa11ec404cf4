import type { Queue } from "bullmq";
import { beforeAll, describe, expect, it } from "vitest";
import type { RedeemJob } from "../../src/contract/jobs.ts";
import { redeemQueue } from "../../src/queues/catalog.ts";
import { openQueue } from "../../src/queues/open-queue.ts";
import type { Shard } from "../../src/queues/shards.ts";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { databaseTime, untilPast, untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs, newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { startWorkers } from "../support/service.ts";
import { issueVouchers } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { servers, db, api, till, rival, partner, keys, issue, contexts } = useService({ workers: [], contexts: 2 });
/** The contexts of two workers that run jobs only when a test calls them. */
const [one, other] = contexts;
let queue: Queue;

beforeAll(() => {
  queue = openQueue(redeemQueue, servers.shards[0] as Shard, api.ctx.redis, api.ctx.log);
  servers.onClose(() => queue.close());
});

let refs = 0;

function newRef(): string {
  refs += 1;
  return `ref-${refs}`;
}

function makeJob(voucherId: string, fields: Partial<RedeemJob> = {}): RedeemJob {
  return redeemJob(partner, keys.till.id, voucherId, newRef(), fields);
}

async function expectOneRedemption(voucherId: string, redeemCode: unknown): Promise<void> {
  const recorded = await readRecorded(db, voucherId);
  expect(recorded).toMatchObject({
    status: "Redeemed",
    lastSequence: 2,
    sealedSequence: 2,
    redemption: { redeemCode },
  });
}

async function expectUntouched(voucherId: string): Promise<void> {
  expect(await readRecorded(db, voucherId)).toMatchObject({
    status: "Active",
    lastSequence: 1,
    redemption: null,
  });
}

it("a job that runs a second time returns its first result, redeems nothing and adds no event", async () => {
  const { id } = await issue();
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  const first = await runRedeemJob(one, attempt, job);
  expect(first).toMatchObject({ kind: "redeemed" });
  expect(await runRedeemJob(other, attempt, job)).toEqual(first);
  await expectOneRedemption(id, first.kind === "redeemed" && first.redeemCode);
});

it("a job that runs a second time returns its first result even after its deadline", async () => {
  const { id } = await issue();
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  const first = await runRedeemJob(one, attempt, job);
  expect(await runRedeemJob(other, attempt, { ...job, deadlineMs: 0 })).toEqual(first);
});

it("a job that runs a second time gets the same redemption when two workers run it at the same time", async () => {
  const { id } = await issue();
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  const { runs } = await whileLocked(db, [id], async () => {
    const runs = [one, other].map((ctx) => runRedeemJob(ctx, attempt, job));
    await untilWaiting(db, 2, "worker");
    return { runs };
  });
  const [first, second] = await Promise.all(runs);
  expect(first).toMatchObject({ kind: "redeemed" });
  expect(second).toEqual(first);
  await expectOneRedemption(id, first?.kind === "redeemed" && first.redeemCode);
});

it("a job that runs a second time gets the same redemption when both runs share a transaction", async () => {
  const { id } = await issue();
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  const [first, second] = await Promise.all([runRedeemJob(one, attempt, job), runRedeemJob(one, attempt, job)]);
  expect(first).toMatchObject({ kind: "redeemed" });
  expect(second).toEqual(first);
  await expectOneRedemption(id, first.kind === "redeemed" && first.redeemCode);
});

it("a job that runs a second time is decided again when its first run was refused", async () => {
  const { id, code } = await issue();
  const { body: reservation } = await rival.reserve(code);
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  expect(await runRedeemJob(one, attempt, job)).toEqual({ kind: "refused", code: "voucher_reserved" });
  await till.release(reservation.ticket);
  expect(await runRedeemJob(one, attempt, job)).toMatchObject({ kind: "redeemed" });
});

it("another job with the same reference is confirmed and redeems nothing", async () => {
  const { id } = await issue();
  const job = makeJob(id);
  const first = await runRedeemJob(one, newAttempt(id), job);
  expect(await runRedeemJob(other, newAttempt(id), job)).toEqual({ kind: "confirmed" });
  await expectOneRedemption(id, first.kind === "redeemed" && first.redeemCode);
});

it("another job with the same reference is confirmed even when it names another voucher, which stays untouched", async () => {
  const [redeemed, spare] = await issueVouchers(db, partner, 2);
  const job = makeJob(redeemed?.id as string);
  await runRedeemJob(one, newAttempt(job.voucherId), job);
  const retry = { ...job, voucherId: spare?.id as string };
  expect(await runRedeemJob(other, newAttempt(retry.voucherId), retry)).toEqual({ kind: "confirmed" });
  await expectUntouched(retry.voucherId);
});

it("another job with the same reference is confirmed even after its deadline", async () => {
  const { id } = await issue();
  const job = makeJob(id);
  await runRedeemJob(one, newAttempt(id), job);
  expect(await runRedeemJob(other, newAttempt(id), { ...job, deadlineMs: 0 })).toEqual({ kind: "confirmed" });
});

it("another job with the same reference is confirmed when it shares a transaction with the first job", async () => {
  const { id } = await issue();
  const job = makeJob(id);
  const [first, second] = await Promise.all([
    runRedeemJob(one, newAttempt(id), job),
    runRedeemJob(one, newAttempt(id), job),
  ]);
  expect(first).toMatchObject({ kind: "redeemed" });
  expect(second).toEqual({ kind: "confirmed" });
});

it("a job past its deadline redeems nothing when the deadline passes while it waits for the voucher's row", async () => {
  const { id } = await issue();
  const { run } = await whileLocked(db, [id], async () => {
    const deadline = new Date((await databaseTime(db)).getTime() + 50);
    const run = runRedeemJob(one, newAttempt(id), makeJob(id, { deadlineMs: deadline.getTime() }));
    await untilWaiting(db, 1, "worker");
    await untilPast(db, deadline);
    return { run };
  });
  expect(await run).toEqual({ kind: "late" });
  await expectUntouched(id);
});

it("a job past its deadline redeems nothing on a connection to another server than the one that its caller has read", async () => {
  const { id } = await issue();
  // As if the server was started again after the worker had accepted the job.
  const before = { ...one, deployment: { id: one.deployment.id, origin: "before", ready: async () => undefined } };
  expect(await runRedeemJob(before, newAttempt(id), makeJob(id))).toEqual({ kind: "late" });
  await expectUntouched(id);
});

it("a job past its deadline redeems nothing when the deadline passes while it waits in the queue", async () => {
  const { id } = await issue();
  const deadline = new Date((await databaseTime(db)).getTime() + 50);
  const attempt = newAttempt(id);
  const { origin } = api.ctx.deployment;
  await queue.add(redeemQueue.name, { ...makeJob(id, { deadlineMs: deadline.getTime() }), origin }, { jobId: attempt });
  await untilPast(db, deadline);
  const workers = await startWorkers(servers);
  await until(async () => (await queue.getJobState(attempt)) === "completed");
  await workers.close();
  expect((await queue.getJob(attempt))?.returnvalue).toEqual({ kind: "late", origin });
  await expectUntouched(id);
});

it("a job with invalid data fails alone, and the same voucher's next redeem succeeds", async () => {
  const { id, code } = await issue();
  const attempts = [newAttempt(id), newAttempt(id), newAttempt(id)];
  const { origin } = api.ctx.deployment;
  const bad = [{}, { ...makeJob(id), deadlineMs: "soon", origin }, { ...makeJob(id), externalRef: null, origin }];
  for (const [n, data] of bad.entries()) await queue.add(redeemQueue.name, data, { jobId: attempts[n] as string });
  const workers = await startWorkers(servers);
  const redeem = await till.redeem({ code, externalRef: newRef() });
  await until(async () => (await Promise.all(attempts.map((a) => queue.getJobState(a)))).every((s) => s === "failed"));
  await workers.close();
  expect(redeem).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  await expectOneRedemption(id, redeem.body.redeemCode);
});

describe("a job that the database refuses", () => {
  /** Runs a job in one batch with four valid ones around it. */
  async function runAmongOthers(poison: RedeemJob): Promise<{ poison: unknown; others: unknown[] }> {
    const [first, ...rest] = await issueVouchers(db, partner, 4);
    const run = (job: RedeemJob) => runRedeemJob(one, newAttempt(job.voucherId), job).catch((error: unknown) => error);
    const [before, poisoned, ...after] = await Promise.all([
      run(makeJob(first?.id as string)),
      run(poison),
      ...rest.map(({ id }) => run(makeJob(id))),
    ]);
    return { poison: poisoned, others: [before, ...after] };
  }

  const redeemed = Array.from({ length: 4 }, () => ({ kind: "redeemed" }));

  it.each([
    { title: "a reference that is too long", fields: { externalRef: "x".repeat(129) } },
    { title: "a reference with a NUL", fields: { externalRef: "a\0b" } },
    { title: "an unknown voucher", fields: { voucherId: "vch_none" } },
    { title: "a voucher id with a NUL", fields: { voucherId: "vch_\0" } },
    { title: "a note with a lone surrogate", fields: { note: "\ud800" } },
  ])("a job that the database refuses fails alone with $title, and the rest of its batch redeems", async ({
    fields,
  }) => {
    const { id } = await issue();
    const { poison, others } = await runAmongOthers(makeJob(id, fields));
    expect(poison).toBeInstanceOf(Error);
    expect(others).toMatchObject(redeemed);
    await expectUntouched(id);
  });

  it("a job that the database refuses fails alone when its voucher's chain is damaged, and the rest of its batch redeems", async () => {
    const { id } = await issue();
    const moveHead = (by: number) =>
      db.query("UPDATE vouchers SET last_sequence = last_sequence + $2 WHERE id = $1", [id, by]);
    await moveHead(1);
    const { poison, others } = await runAmongOthers(makeJob(id));
    await moveHead(-1);
    expect(poison).toBeInstanceOf(Error);
    expect(others).toMatchObject(redeemed);
    await expectUntouched(id);
  });

  it("a job that the database refuses leaves its worker able to redeem the same voucher", async () => {
    const { id } = await issue();
    const run = (job: RedeemJob) => runRedeemJob(one, newAttempt(id), job);
    await expect(run(makeJob(id, { externalRef: "" }))).rejects.toMatchObject({ code: "23514" });
    expect(await run(makeJob(id))).toMatchObject({ kind: "redeemed" });
  });
});

it("a worker that is closed closes only after its running jobs have finished", async () => {
  const stuck = await issueVouchers(db, partner, 3);
  const workers = await startWorkers(servers);
  const ids = stuck.map(({ id }) => id);
  const { redeems, closing } = await whileLocked(db, ids, async () => {
    const redeems = stuck.map(({ code }) => till.redeem({ code, externalRef: newRef() }));
    await untilWaiting(db, 3, "worker");
    const closing = workers.close().then(() => "closed");
    const { id } = await issue();
    const stillOpen = runRedeemJob(one, newAttempt(id), makeJob(id)).then(() => "still open");
    expect(await Promise.race([closing, stillOpen])).toBe("still open");
    return { redeems, closing };
  });
  expect((await Promise.all(redeems)).map(({ status }) => status)).toEqual([200, 200, 200]);
  await closing;
  expect(await countJobs(servers, redeemQueue.name)).toBe(0);
});

it("a worker that is closed leaves jobs that it has not started to the next worker", async () => {
  const { id, code } = await issue();
  await (await startWorkers(servers)).close();
  const redeem = till.redeem({ code, externalRef: newRef() });
  await until(async () => (await countJobs(servers, redeemQueue.name)) === 1);
  await expectUntouched(id);
  const successor = await startWorkers(servers);
  expect(await redeem).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  await successor.close();
});
