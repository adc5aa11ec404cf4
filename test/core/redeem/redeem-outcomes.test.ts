import type pg from "pg";
import { beforeAll, expect, it, vi } from "vitest";
import { awaitConfirmation } from "../../../src/core/commit/confirm-reads.ts";
import { deleteOldEnds, lockReferences, lockReferencesToEnd } from "../../../src/core/redeem/db/redemptions.ts";
import { removeEnds } from "../../../src/core/redeem/end-references.ts";
import { redeemQueue } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { normaliseReference } from "../../../src/core/voucher/references.ts";
import { BatcherFull } from "../../../src/platform/batching/batcher.ts";
import { inTransaction } from "../../../src/platform/db/transaction.ts";
import { partnerClient, type Reply } from "../../support/client.ts";
import {
  besideTransaction,
  bypassTriggers,
  databaseTime,
  longestWaitMs,
  untilPast,
  whileLocked,
} from "../../support/outside-transaction.ts";
import { exchange } from "../../support/raw-http.ts";
import { countJobs, newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { startWorkers } from "../../support/service.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { inTime, until, untilOr } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** The APIs wait for a worker for one second only. Milliseconds. */
const REDEEM_WAIT_MS = 1_000;

// A worker context runs a job only when a test calls it.
const service = useService({ workers: [], contexts: 1, env: { REDEEM_WAIT_MS: String(REDEEM_WAIT_MS) } });
const { servers, api, partner, keys, till, rival, issue } = service;
const worker = service.contexts[0];

beforeAll(async () => {
  // A worker's first job opens its connections, which may take longer than REDEEM_WAIT_MS.
  const { id } = await issue();
  await runRedeemJob(worker, newAttempt(id), redeemJob(partner, keys.till.id, id, "first"));
});

const openJobs = () => countJobs(servers, redeemQueue.name);

it("a redeem without a timely reply answers with the redemption if an earlier attempt has redeemed", async () => {
  const { id, retry } = await until(async () => {
    const { id, code } = await issue();
    const externalRef = `redeemed-earlier-${id}`;
    const [earlier, job] = [newAttempt(id), redeemJob(partner, keys.till.id, id, externalRef)];
    return inTime(REDEEM_WAIT_MS, async () => {
      const retry = till.redeem({ code, externalRef });
      if (!(await untilOr(retry, async () => (await openJobs()) === 1))) return null;
      await runRedeemJob(worker, earlier, job);
      return { id, retry };
    });
  });
  expect(await retry).toMatchObject({
    status: 200,
    body: { redeemed: true, alreadyConfirmed: true, voucherInstanceId: id },
  });
});

it("a redeem is redeem_unknown if no worker replies and a transaction for its reference is still open", async () => {
  const voucher = await issue();
  const reply = await inTransaction(worker.pool, async (outside) => {
    const ref = { organizationId: partner.organizationId, externalRef: "still-open" };
    expect(await lockReferences(outside, [{ ...ref, seenEnd: 0, generation: 2 }])).toEqual([]);
    return till.redeem({ code: voucher.code, externalRef: "still-open" });
  });
  expect(reply).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
  expect(reply.body.error).not.toMatch(/nothing/i);
});

it("a redeem that answered redeem_timeout redeems nothing later, even if its job runs after all", async () => {
  const { voucher, asked, jobId, job } = await until(async () => {
    const voucher = await issue();
    const asked = till.redeem({ code: voucher.code, externalRef: `handed-out-late-${voucher.id}` });
    const queue = `${servers.shardOf(voucher.id).prefix}:${redeemQueue.name}`;
    const jobId = await untilOr(asked, () => servers.redis.lindex(`${queue}:wait`, 0));
    const { data: job } = await servers.redis.hgetall(`${queue}:${jobId}`);
    return jobId && job ? { voucher, asked, jobId, job } : null;
  });
  const reply = await asked;
  expect(reply).toMatchObject({ status: 503, body: { code: "redeem_timeout" } });
  expect(reply.body.error).toContain("This attempt redeemed nothing.");
  // A later deadline has the effect of a clock that was set back by an hour.
  const { deadlineMs, ...data } = JSON.parse(job);
  const late = { ...data, deadlineMs: deadlineMs + 3_600_000 };
  expect(await runRedeemJob(worker, jobId, late)).toEqual({ kind: "late" });
  expect((await till.lookUp(voucher.code)).body.voucher.status).toBe("Active");
});

it("after a 409, a retry can redeem the reference, but an attempt before the 409 cannot", async () => {
  const { code, id } = await issue();
  const order = { code, externalRef: "refused-by-a-worker" };
  const before = redeemJob(partner, keys.till.id, id, order.externalRef);
  const { body } = await rival.reserve(code);
  const workers = await startWorkers(servers);
  await until(async () => (await till.redeem(order)).body.code === "voucher_reserved");
  await rival.release(body.ticket);
  expect(await runRedeemJob(worker, newAttempt(id), before)).toEqual({ kind: "late" });
  expect((await till.lookUp(code)).body.voucher.status).toBe("Active");
  await until(async () => (await till.redeem(order)).body.voucherInstanceId === id);
  await workers.close();
});

const UNKNOWN_CODE = "7Q4K-9MZX-2HTB-W8RC";

/** Redeems that the API refuses without a worker, each with its answer. */
const REFUSED: [answer: string, redeem: (externalRef: string) => Promise<Reply>][] = [
  ["409 voucher_expired", (externalRef) => refuse(externalRef)],
  ["404 voucher_not_found", (externalRef) => till.redeem({ code: UNKNOWN_CODE, externalRef })],
  [
    "409 voucher_reserved",
    async (externalRef) => {
      const { code } = await issue();
      await rival.reserve(code);
      return till.redeem({ code, externalRef });
    },
  ],
  [
    "409 reservation_ended",
    async (externalRef) => {
      const { ticket } = (await till.reserve((await issue()).code)).body;
      await till.release(ticket);
      return till.redeem({ ticket, externalRef });
    },
  ],
  [
    "409 token_mismatch",
    async (externalRef) => {
      const { ticket } = (await till.reserve((await issue()).code)).body;
      return till.redeem({ ticket, token: "another", externalRef });
    },
  ],
];

/** Refusals that do not end an earlier attempt of the reference. */
const OPEN: typeof REFUSED = [
  [
    "503 overloaded",
    async (externalRef) => {
      vi.spyOn(api.ctx.redeemQueue, "askForPlace").mockReturnValueOnce(false);
      return till.redeem({ code: (await issue()).code, externalRef });
    },
  ],
  [
    "503 overloaded",
    async (externalRef) => {
      vi.spyOn(api.ctx.voucherReads, "submit").mockRejectedValueOnce(new BatcherFull());
      return till.redeem({ code: (await issue()).code, externalRef });
    },
  ],
  [
    "429 too_many_misses",
    async (externalRef) => {
      const strict = await service.startApi({ MISS_LIMIT_PER_MINUTE: "1" });
      const client = partnerClient(strict.url, keys.till.key);
      await client.lookUp(UNKNOWN_CODE);
      return client.redeem({ code: UNKNOWN_CODE, externalRef }).finally(strict.close);
    },
  ],
];

it.each(
  REFUSED,
)("after a refusal with %s, no attempt before the refusal can redeem the reference", async (answer, redeem) => {
  const { id } = await issue();
  const externalRef = `told-${crypto.randomUUID()}`;
  const before = redeemJob(partner, keys.till.id, id, externalRef);
  const { status, body } = await redeem(externalRef);
  expect(`${status} ${body.code}`).toBe(answer);
  expect(await runRedeemJob(worker, newAttempt(id), before)).toEqual({ kind: "late" });
});

it.each(
  OPEN,
)("a redeem refused with %s writes nothing, and an earlier attempt can still redeem", async (answer, redeem) => {
  const { id } = await issue();
  const externalRef = `te\u0301 ${crypto.randomUUID()}`;
  const before = redeemJob(partner, keys.till.id, id, normaliseReference(externalRef));
  const ends = async () => (await servers.db.query("SELECT * FROM reference_ends")).rows;
  const endsBefore = await ends();
  const { status, body } = await redeem(externalRef.normalize());
  expect(`${status} ${body.code}`).toBe(answer);
  // A reference in the Unicode form that an earlier release stored causes no write either.
  if (answer.startsWith("429")) expect((await redeem(externalRef)).status).toBe(429);
  expect(await ends()).toEqual(endsBefore);
  expect(await runRedeemJob(worker, newAttempt(id), before)).toMatchObject({ kind: "redeemed" });
});

it("a key over the limit of unknown codes gets a redemption whose reference an earlier release stored", async () => {
  const { id, code } = await issue();
  const externalRef = `caf\u0065\u0301 ${id}`;
  const job = redeemJob(partner, keys.till.id, id, externalRef);
  expect(await runRedeemJob(worker, newAttempt(id), job)).toMatchObject({ kind: "redeemed" });
  const strict = await service.startApi({ MISS_LIMIT_PER_MINUTE: "1" });
  const client = partnerClient(strict.url, (await makeKey(servers.db, partner.organizationId)).key);
  await until(async () => (await client.lookUp(UNKNOWN_CODE)).status === 429);
  const retry = await client.redeem({ code, externalRef });
  expect(retry).toMatchObject({ status: 200, body: { alreadyConfirmed: true, voucherInstanceId: id } });
  await strict.close();
});

it("a second delivery of a redeem job whose caller got voucher_busy redeems nothing", async () => {
  const { id, code } = await issue();
  const order = { code, externalRef: "told-busy" };
  const workers = await startWorkers(servers, { REDEEM_WAIT_MS: "600" });
  const patient = await service.startApi({ REDEEM_WAIT_MS: "15000" });
  const client = partnerClient(patient.url, keys.till.key);
  const queue = `${servers.shardOf(id).prefix}:${redeemQueue.name}`;
  const { jobId, job, told } = await whileLocked(servers.db, [id], async () => {
    const asked = client.redeem(order);
    const jobId = await until(async () => {
      const keys = await servers.redis.keys(`${queue}:${id}-*`);
      return keys.find((key) => !key.endsWith(":lock"))?.slice(queue.length + 1);
    });
    const { data = "" } = await servers.redis.hgetall(`${queue}:${jobId}`);
    return { jobId, job: JSON.parse(data), told: await asked };
  });
  expect(told).toMatchObject({ status: 503, body: { code: "voucher_busy" } });
  expect(await runRedeemJob(worker, jobId, job)).toEqual({ kind: "late" });
  expect((await till.lookUp(code)).body.voucher.status).toBe("Active");
  expect(await client.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
  await patient.close();
  await workers.close();
});

it("a redeem that a process reads after a freeze answers redeem_unknown and adds no job", async () => {
  const { code } = await issue();
  const body = JSON.stringify({ code, externalRef: "unread" });
  const head = ["POST /partner/vouchers/redeem HTTP/1.1", "Host: x", `X-Api-Key: ${keys.till.key}`];
  const lines = [...head, `Content-Length: ${body.length}`, "Connection: close", "", body];
  // The process stops before it can read the request, for slightly longer than the pause that it must notice.
  const answer = await exchange(api.url, lines.join("\r\n"), () => blockProcess(2_400));
  expect(answer.status).toBe(503);
  expect(JSON.parse(answer.text)).toMatchObject({ code: "redeem_unknown" });
  expect(await openJobs()).toBe(0);
  // After some time without a pause, redeems wait for a worker again.
  await until(async () => (await till.redeem({ code, externalRef: "calm" })).body.code === "redeem_timeout");
});

/** Blocks the event loop, as in a frozen process. */
function blockProcess(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it("a worker cannot redeem a reference whose refusal with 409 is being committed", async () => {
  const { id } = await issue();
  const job = redeemJob(partner, keys.till.id, id, "being-ended");
  await inTransaction(worker.pool, async (outside) => {
    expect((await lockReferencesToEnd(outside, [job])).size).toBe(0);
    expect(await runRedeemJob(worker, newAttempt(id), job)).toEqual({ kind: "late" });
  });
  expect(await runRedeemJob(worker, newAttempt(id), job)).toMatchObject({ kind: "redeemed" });
});

it("a redeem answers redeem_unknown instead of 409 if its row in reference_ends cannot be committed", async () => {
  vi.spyOn(api.ctx.referenceEnds, "submit").mockRejectedValueOnce(new Error("the connection is lost"));
  expect(await refuse("not-ended")).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
});

it("a row in reference_ends is kept until all earlier attempts are too old to redeem", async () => {
  const [first, second, third] = (await issueVouchers(servers.db, partner, 3)).map(({ id }) => id);
  const attempt = (voucherId = "", generation: number) =>
    runRedeemJob(
      worker,
      newAttempt(voucherId),
      redeemJob(partner, keys.till.id, voucherId, "generations", { generation }),
    );
  await refuse("generations");
  const { rows } = await servers.db.query("SELECT generation FROM reference_generation");
  const generation = rows[0].generation;
  await beginGeneration();
  expect(await deleteOldEnds(worker.pool, 100)).toBe(0);
  await expect(servers.db.query("DELETE FROM reference_ends")).rejects.toThrow("may not have seen");
  expect(await attempt(first, generation)).toEqual({ kind: "late" });
  await beginGeneration();
  expect(await deleteOldEnds(worker.pool, 100)).toBeGreaterThan(0);
  expect(await attempt(second, generation)).toEqual({ kind: "late" });
  expect(await attempt(third, generation + 1)).toMatchObject({ kind: "redeemed" });
});

it("the sweeper deletes old rows of reference_ends in batches of ten thousand until its time is up", async () => {
  await bypassTriggers(
    servers.db,
    `INSERT INTO reference_ends (organization_id, external_ref, generation)
     SELECT '${partner.organizationId}', 'old-' || n, 0 FROM generate_series(1, 20001) AS n`,
  );
  await beginGeneration();
  await beginGeneration();
  expect(await removeEnds(worker, performance.now())).toBe(10_000);
  expect(await removeEnds(worker, Number.POSITIVE_INFINITY)).toBeGreaterThanOrEqual(10_001);
});

it("a standby's confirmation does not wait while the sweeper begins a generation of reference_ends", async () => {
  await inTransaction(worker.pool, async (outside) => {
    await outside.query("UPDATE reference_generation SET generation = generation + 1");
    await awaitConfirmation(api.ctx, api.ctx.deployment.serverId);
  });
});

it("the sweeper begins no generation of reference_ends while a transaction adds to the present one", async () => {
  await inTransaction(worker.pool, async (outside) => {
    await lockReferencesToEnd(outside, []);
    await expect(beginGeneration()).rejects.toThrow("lock timeout");
  });
  await expect(servers.db.query("UPDATE reference_generation SET generation = generation + 2")).rejects.toThrow(
    "follow each other",
  );
});

/** Redeems an expired voucher under this reference, which the API refuses. */
async function refuse(externalRef: string) {
  const { code } = await issue({ validUntil: new Date(Date.now() - 1_000) });
  return till.redeem({ code, externalRef });
}

/** Begins the next generation of rows in `reference_ends`, as if an hour had passed. */
async function beginGeneration(): Promise<void> {
  await bypassTriggers(servers.db, "UPDATE reference_generation SET started_at = 'epoch'");
  await deleteOldEnds(worker.pool, 0);
}

it("a redeem of an expired voucher answers redeem_unknown while an earlier attempt is not committed", async () => {
  const patient = await service.startApi({ REDEEM_WAIT_MS: "15000" });
  const workers = await startWorkers(servers);
  const client = partnerClient(patient.url, keys.till.key);
  const redeemPastEnd = async () => {
    const validUntil = new Date((await databaseTime(servers.db)).getTime() + 3_000);
    const voucher = await issue({ validUntil });
    const order = { code: voucher.code, externalRef: `decided-in-time-${voucher.id}` };
    const redeemInTime = async (outside: pg.PoolClient) => {
      await outside.query("LOCK TABLE redemptions IN SHARE MODE");
      const earlier = client.redeem(order);
      // The commit batch gives up after 250 ms. Then the redeem, already decided, waits in a transaction of its own.
      if (!(await untilOr(earlier, async () => (await longestWaitMs(servers.db)) > 400))) return null;
      await untilPast(servers.db, validUntil);
      const later = await client.redeem(order);
      await outside.query("COMMIT");
      return { validUntil, voucher, order, first: await earlier, second: later };
    };
    // If this takes less than five seconds, the redeem has not given up its wait for the lock.
    return inTime(5_000, () => besideTransaction(servers.db, redeemInTime));
  };
  try {
    // Opens the connections, which takes long on a busy machine.
    await client.redeem({ code: (await issue()).code, externalRef: "opens-connections" });
    const { validUntil, voucher, order, first, second } = await until(redeemPastEnd);
    expect(first).toMatchObject({ status: 200, body: { redeemed: true, voucherInstanceId: voucher.id } });
    expect(second).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
    const third = await client.redeem(order);
    expect(third).toMatchObject({ status: 200, body: { alreadyConfirmed: true, voucherInstanceId: voucher.id } });
    expect(Date.parse(first.body.redeemedAt)).toBeLessThan(validUntil.getTime());
  } finally {
    await patient.close();
    await workers.close();
  }
});
