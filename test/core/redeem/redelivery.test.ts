import type { Queue } from "bullmq";
import { beforeAll, expect, it } from "vitest";
import type { RedeemJob } from "../../../src/core/redeem/job.ts";
import { redeemQueue } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { openQueue } from "../../../src/platform/queues/open-queue.ts";
import type { Shard } from "../../../src/platform/queues/shards.ts";
import { databaseTime, untilPast, untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { countJobs, newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { startWorkers } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { servers, db, api, till, rival, partner, keys, issue, contexts } = useService({ workers: [], contexts: 2 });
/** The contexts of two workers that run jobs only when a test calls them. */
const [one, other] = contexts;
let queue: Queue;
/** The id of the database server, which the API puts into every job. */
let origin: string;

beforeAll(() => {
  queue = openQueue(redeemQueue, servers.shards[0] as Shard, api.ctx.redis, api.ctx.log);
  servers.onClose(() => queue.close());
  origin = api.ctx.deployment.serverId;
});

let refs = 0;

type Runs = (id: string, run: (at: number, deadlineMs?: number) => Promise<unknown>) => Promise<unknown[]>;

/** Ways to run a job twice. Each run has a number. */
const TWICE: [how: string, runs: Runs][] = [
  ["one after the other", async (_, run) => [await run(0), await run(1)]],
  ["the second after its deadline", async (_, run) => [await run(0), await run(1, 0)]],
  ["both in one transaction", (_, run) => Promise.all([run(0), run(0)])],
  [
    "by two workers at the same time",
    async (id, run) => {
      const { runs } = await whileLocked(db, [id], async () => {
        const runs = [run(0), run(1)];
        await untilWaiting(db, 2, "worker");
        return { runs };
      });
      return Promise.all(runs);
    },
  ],
];

it.each(TWICE)("a second run of a redeem job returns the first result and redeems nothing: %s", async (_, runs) => {
  const { id } = await issue();
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  const [first, second] = await runs(id, (at, deadlineMs = job.deadlineMs) =>
    runRedeemJob([one, other][at] as typeof one, attempt, { ...job, deadlineMs }),
  );
  expect(first).toMatchObject({ kind: "redeemed" });
  expect(second).toEqual(first);
  await expectOneRedemption(id, (first as { redeemCode: string }).redeemCode);
});

it.each(
  TWICE,
)("a second redeem job with the same reference returns confirmed and redeems nothing: %s", async (_, runs) => {
  const { id } = await issue();
  const job = makeJob(id);
  const results = await runs(id, (at, deadlineMs = job.deadlineMs) =>
    runRedeemJob([one, other][at] as typeof one, newAttempt(id), { ...job, deadlineMs }),
  );
  const first = results.find((result) => (result as { kind: string }).kind === "redeemed") as { redeemCode: string };
  expect(results.filter((result) => result !== first)).toEqual([{ kind: "confirmed" }]);
  await expectOneRedemption(id, first.redeemCode);
});

it("a redeem job with a redeemed reference returns confirmed and leaves the job's voucher unchanged", async () => {
  const [redeemed, spare] = await issueVouchers(db, partner, 2);
  const job = makeJob(redeemed?.id as string);
  await runRedeemJob(one, newAttempt(job.voucherId), job);
  const retry = { ...job, voucherId: spare?.id as string };
  expect(await runRedeemJob(other, newAttempt(retry.voucherId), retry)).toEqual({ kind: "confirmed" });
  await expectUntouched(retry.voucherId);
});

it("a second run of a refused redeem job decides again", async () => {
  const { id, code } = await issue();
  const { body: reservation } = await rival.reserve(code);
  const [attempt, job] = [newAttempt(id), makeJob(id)];
  expect(await runRedeemJob(one, attempt, job)).toEqual({ kind: "refused", code: "voucher_reserved" });
  await till.release(reservation.ticket);
  expect(await runRedeemJob(one, attempt, job)).toMatchObject({ kind: "redeemed" });
});

it("a redeem job redeems nothing if its deadline passes during the wait for the row lock", async () => {
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

it("a redeem job past its deadline redeems nothing on another database server than its caller's", async () => {
  const { id } = await issue();
  // A worker whose database server restarts after the worker has accepted the job.
  const before = { ...one, deployment: { id: one.deployment.id, serverId: "before", ready: async () => undefined } };
  expect(await runRedeemJob(before, newAttempt(id), makeJob(id))).toEqual({ kind: "late" });
  await expectUntouched(id);
});

it("a redeem job redeems nothing if its deadline passes while the job waits in the queue", async () => {
  const { id } = await issue();
  const deadline = new Date((await databaseTime(db)).getTime() + 50);
  const attempt = newAttempt(id);
  await queue.add(redeemQueue.name, { ...makeJob(id, { deadlineMs: deadline.getTime() }), origin }, { jobId: attempt });
  await untilPast(db, deadline);
  const workers = await startWorkers(servers);
  await until(async () => (await queue.getJobState(attempt)) === "completed");
  await workers.close();
  expect((await queue.getJob(attempt))?.returnvalue).toEqual({ kind: "late", origin });
  await expectUntouched(id);
});

it("a redeem job with invalid data fails alone, and its voucher's next redeem succeeds", async () => {
  const { id, code } = await issue();
  const attempts = [newAttempt(id), newAttempt(id), newAttempt(id)];
  const bad = [{}, { ...makeJob(id), deadlineMs: "soon", origin }, { ...makeJob(id), externalRef: null, origin }];
  for (const [n, data] of bad.entries()) await queue.add(redeemQueue.name, data, { jobId: attempts[n] as string });
  const workers = await startWorkers(servers);
  const redeem = await till.redeem({ code, externalRef: newRef() });
  await until(async () => (await Promise.all(attempts.map((a) => queue.getJobState(a)))).every((s) => s === "failed"));
  await workers.close();
  expect(redeem).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  await expectOneRedemption(id, redeem.body.redeemCode);
});

it("a redeem job that the database refuses fails alone, and the rest of its batch redeems", async () => {
  const run = (job: RedeemJob) => runRedeemJob(one, newAttempt(job.voucherId), job).catch((error: unknown) => error);
  const expectRefused = async (poison: RedeemJob) => {
    const [first, ...rest] = await issueVouchers(db, partner, 4);
    const jobs = [makeJob(first?.id as string), poison, ...rest.map(({ id }) => makeJob(id))];
    const [before, refused, ...after] = await Promise.all(jobs.map(run));
    expect(refused, JSON.stringify(poison)).toBeInstanceOf(Error);
    expect([before, ...after]).toMatchObject(Array.from({ length: 4 }, () => ({ kind: "redeemed" })));
  };
  const { id } = await issue();
  for (const fields of [
    { externalRef: "x".repeat(129) },
    { externalRef: "a\0b" },
    { externalRef: "" },
    { voucherId: "vch_none" },
    { voucherId: "vch_\0" },
    { note: "\ud800" },
  ]) {
    await expectRefused(makeJob(id, fields));
  }
  await expectUntouched(id);
  expect(await run(makeJob(id))).toMatchObject({ kind: "redeemed" });
  const { id: damaged } = await issue();
  const moveHead = (by: number) =>
    db.query("UPDATE vouchers SET last_sequence = last_sequence + $2 WHERE id = $1", [damaged, by]);
  await moveHead(1);
  await expectRefused(makeJob(damaged));
  await moveHead(-1);
  await expectUntouched(damaged);
});

it("a worker closes only after its running redeem jobs have ended", async () => {
  const stuck = await issueVouchers(db, partner, 2);
  const workers = await startWorkers(servers);
  const ids = stuck.map(({ id }) => id);
  const { redeems, closing } = await whileLocked(db, ids, async () => {
    const redeems = stuck.map(({ code }) => till.redeem({ code, externalRef: newRef() }));
    await untilWaiting(db, 2, "worker");
    const closing = workers.close().then(() => "closed");
    const { id } = await issue();
    const stillOpen = runRedeemJob(one, newAttempt(id), makeJob(id)).then(() => "still open");
    expect(await Promise.race([closing, stillOpen])).toBe("still open");
    return { redeems, closing };
  });
  expect((await Promise.all(redeems)).map(({ status }) => status)).toEqual([200, 200]);
  await closing;
  expect(await countJobs(servers, redeemQueue.name)).toBe(0);
});

it("a closing worker leaves jobs that have not started to another worker", async () => {
  const { id, code } = await issue();
  await (await startWorkers(servers)).close();
  const redeem = till.redeem({ code, externalRef: newRef() });
  await until(async () => (await countJobs(servers, redeemQueue.name)) === 1);
  await expectUntouched(id);
  const successor = await startWorkers(servers);
  expect(await redeem).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  await successor.close();
});

function newRef(): string {
  refs += 1;
  return `ref-${refs}`;
}

function makeJob(voucherId: string, fields: Partial<RedeemJob> = {}): RedeemJob {
  return redeemJob(partner, keys.till.id, voucherId, newRef(), fields);
}

async function expectOneRedemption(voucherId: string, redeemCode: unknown): Promise<void> {
  const once = { status: "Redeemed", lastSequence: 2, sealedSequence: 2, redemption: { redeemCode } };
  expect(await readRecorded(db, voucherId)).toMatchObject(once);
}

async function expectUntouched(voucherId: string): Promise<void> {
  expect(await readRecorded(db, voucherId)).toMatchObject({ status: "Active", lastSequence: 1, redemption: null });
}
