import { expect, it, vi } from "vitest";
import { redeemQueue } from "../../../src/core/redeem/job.ts";
import { waitingMaxOfShard } from "../../../src/platform/queues/queue-settings.ts";
import { partnerClient } from "../../support/client.ts";
import { countJobs } from "../../support/redeem-jobs.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const WAIT_MS = 500;

const { api, servers, partner, keys, till, issue } = useService({
  workers: [],
  env: { REDEEM_WAIT_MS: String(WAIT_MS) },
});

it("a redeem without a worker answers 503 after REDEEM_WAIT_MS, and redeems nothing later", async () => {
  const voucher = await issue();
  const before = await dumpRows(servers.db);
  const added = vi.spyOn(api.ctx.redeemQueue, "addAndWait");
  const startedAt = performance.now();
  const { status, body, headers } = await till.redeem({ code: voucher.code, externalRef: "no-worker" });
  const tookMs = performance.now() - startedAt;
  expect({ status, code: body.code }).toEqual({ status: 503, code: "redeem_timeout" });
  expect(body.error).toContain("This attempt redeemed nothing.");
  expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(tookMs).toBeGreaterThanOrEqual(WAIT_MS - 20);
  // The test sets no upper bound for `tookMs`, because a busy machine may take any time.
  expect(added.mock.lastCall?.[2]).toBeLessThanOrEqual(WAIT_MS);
  added.mockRestore();
  expect(await dumpRows(servers.db)).toEqual(before);
  // The API answers first and withdraws the job afterwards.
  await until(async () => (await countJobs(servers, redeemQueue.name)) === 0);
  expect(await servers.redis.keys(`*:${redeemQueue.name}:${voucher.id}*`)).toEqual([]);
});

it("a redeem answers overloaded when too many jobs wait, unless its reference is already redeemed", async () => {
  const [redeemed, other] = await issueVouchers(servers.db, partner, 2);
  const worker = await startWorkers(servers);
  // A new worker may need longer than these callers wait.
  await until(async () => (await till.redeem({ code: redeemed?.code, externalRef: "before-the-load" })).status === 200);
  await worker.close();
  const waiting = `${servers.shardOf(other?.id ?? "").prefix}:${redeemQueue.name}:wait`;
  const waitingMax = waitingMaxOfShard(redeemQueue, servers.shards.length);
  const jobIds = Array.from({ length: waitingMax }, (_, n) => `waiting-${n}`);
  await servers.redis.rpush(waiting, ...jobIds);
  try {
    const { status, headers } = await until(async () => {
      const reply = await till.redeem({ code: other?.code, externalRef: "too-many" });
      return reply.body.code === "overloaded" ? reply : null;
    });
    expect(status).toBe(503);
    expect(await servers.redis.llen(waiting)).toBe(waitingMax);
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    const retry = await till.redeem({ code: redeemed?.code, externalRef: "before-the-load" });
    expect(retry).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
    expect((await till.lookUp(other?.code ?? "")).body.voucher.status).toBe("Active");
  } finally {
    await servers.redis.del(waiting);
  }
  // Calls count the waiting jobs again at most every 250 ms.
  await until(
    async () => (await till.redeem({ code: other?.code, externalRef: "too-many" })).body.code !== "overloaded",
  );
});

it("a redeem that timed out leaves no job in Redis, and a retry with a worker redeems once", async () => {
  const [given, up, other] = await issueVouchers(servers.db, partner, 3);
  expect((await till.redeem({ code: given?.code, externalRef: "given-up-1" })).status).toBe(503);
  expect((await till.redeem({ code: up?.code, externalRef: "given-up-2" })).status).toBe(503);
  const worker = await startWorkers(servers, { REDEEM_WAIT_MS: String(WAIT_MS) });
  // Uses the default wait, because a redeem on a busy machine may take longer than WAIT_MS.
  const patient = await startApi(servers);
  const retry = partnerClient(patient.url, keys.till.key);
  try {
    // A shard's jobs run in order. Once this voucher is redeemed, every earlier job that still existed has run.
    const marker = await until(async () => {
      const reply = await till.redeem({ code: other?.code, externalRef: "marker" });
      return reply.status === 200 ? reply : null;
    });
    expect(marker.body.voucherInstanceId).toBe(other?.id);
    for (const voucher of [given, up]) {
      expect((await till.lookUp(voucher?.code ?? "")).body.voucher.status).toBe("Active");
    }
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS n FROM redemptions WHERE external_ref LIKE 'given-up-%'",
    );
    expect(rows[0].n).toBe(0);

    // The reference of an abandoned attempt can be used for another voucher as well.
    for (const [again, externalRef] of [
      [given, "given-up-1"],
      [await issue(), "given-up-2"],
    ] as const) {
      const body = { alreadyConfirmed: false, voucherInstanceId: again?.id };
      expect(await retry.redeem({ code: again?.code, externalRef })).toMatchObject({ status: 200, body });
    }
  } finally {
    await worker.close();
    await patient.close();
  }
});

it("without a worker, redeem answers redeemed references, used or expired vouchers and unknown codes", async () => {
  const [used, expired] = [await issue(), await issue({ validUntil: new Date(Date.now() - 1_000) })];
  const worker = await startWorkers(servers);
  const first = await until(async () => {
    const reply = await till.redeem({ code: used.code, externalRef: "confirmed-before" });
    return reply.status === 200 ? reply : null;
  });
  await worker.close();
  const again = await till.redeem({ code: used.code, externalRef: "confirmed-before" });
  expect(again.body).toEqual({ ...first.body, alreadyConfirmed: true });
  expect((await till.redeem({ code: used.code, externalRef: "x" })).body.code).toBe("voucher_used");
  expect((await till.redeem({ code: expired.code, externalRef: "x" })).body.code).toBe("voucher_expired");
  expect((await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "x" })).status).toBe(404);
});
