import { beforeAll, describe, expect, it } from "vitest";
import { redeemQueue } from "../../src/queues/catalog.ts";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import {
  besideTransaction,
  databaseTime,
  longestWaitMs,
  untilPast,
  whileLocked,
} from "../support/outside-transaction.ts";
import { countJobs, newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import type { TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type WorkerContext } from "../support/service.ts";
import { startService } from "../support/start-service.ts";
import { issueVoucher, makeKey, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
/** Runs jobs only when a test calls it. */
let worker: WorkerContext;
let partner: TestPartner;
let keyId: string;
/** Waits for a worker for one second only. */
let till: PartnerClient;

beforeAll(async () => {
  const service = await startService({ contexts: 1, env: { REDEEM_WAIT_MS: "1000" } });
  ({ servers, partner, keyId } = service);
  [worker, till] = [...service.contexts, ...service.tills] as [WorkerContext, PartnerClient];
  // A worker's first job opens its connections. On a busy machine, that takes longer than the second.
  const { id } = await issueVoucher(servers.db, partner);
  await runRedeemJob(worker, newAttempt(id), redeemJob(partner, keyId, id, "first"));
  return service.close;
});

const openJobs = () => countJobs(servers, redeemQueue.name);

describe("a redeem without a reply before its deadline", () => {
  it("answers the redemption that an earlier attempt with its reference has made", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const retry = till.redeem({ code: voucher.code, externalRef: "redeemed-earlier" });
    await until(async () => (await openJobs()) === 1);
    const earlier = newAttempt(voucher.id);
    await runRedeemJob(worker, earlier, redeemJob(partner, keyId, voucher.id, "redeemed-earlier"));
    expect(await retry).toMatchObject({
      status: 200,
      body: { redeemed: true, alreadyConfirmed: true, voucherInstanceId: voucher.id },
    });
  });

  it("answers redeem_unknown while a transaction that may redeem the voucher is open", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const reply = await whileLocked(servers.db, [voucher.id], () =>
      till.redeem({ code: voucher.code, externalRef: "still-open" }),
    );
    expect(reply).toMatchObject({ status: 503, body: { code: "redeem_unknown" } });
    expect(reply.body.error).not.toMatch(/nothing/i);
  });

  it("redeems nothing later when Redis loses the withdrawal of its job and a worker runs it", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const asked = till.redeem({ code: voucher.code, externalRef: "handed-out-late" });
    const queue = `${servers.shardOf(voucher.id).prefix}:${redeemQueue.name}`;
    const jobId = await until(() => servers.redis.lindex(`${queue}:wait`, 0));
    const job = await servers.redis.hgetall(`${queue}:${jobId}`);
    const reply = await asked;
    expect(reply).toMatchObject({ status: 503, body: { code: "redeem_timeout" } });
    expect(reply.body.error).toContain("This attempt redeemed nothing.");
    expect(await runRedeemJob(worker, jobId, JSON.parse(job.data ?? ""))).toEqual({ kind: "late" });
    expect((await till.lookUp(voucher.code)).body.voucher.status).toBe("Active");
  });
});

describe("a redeem of a voucher that has expired", () => {
  it("answers the redemption of an earlier attempt that was decided before the expiry and commits after it", async () => {
    const patient = await startApi(servers);
    const workers = await startWorkers(servers);
    const key = await makeKey(servers.db, partner.organizationId);
    const client = partnerClient(patient.url, key.key);
    const validUntil = new Date((await databaseTime(servers.db)).getTime() + 3_000);
    const voucher = await issueVoucher(servers.db, partner, { validUntil });
    const order = { code: voucher.code, externalRef: "decided-in-time" };
    try {
      const [first, second] = await besideTransaction(servers.db, async (outside) => {
        await outside.query("LOCK TABLE redemptions IN SHARE MODE");
        const earlier = client.redeem(order);
        // The batch gives up after 250 ms. After that it waits in its own transaction, which has made its decision.
        await until(async () => (await longestWaitMs(servers.db)) > 400);
        await untilPast(servers.db, validUntil);
        const later = client.redeem(order);
        await until(async () => (await openJobs()) === 2);
        await outside.query("COMMIT");
        return Promise.all([earlier, later]);
      });
      expect(first).toMatchObject({ status: 200, body: { redeemed: true, voucherInstanceId: voucher.id } });
      expect(second).toMatchObject({ status: 200, body: { alreadyConfirmed: true, voucherInstanceId: voucher.id } });
      expect(Date.parse(first.body.redeemedAt)).toBeLessThan(validUntil.getTime());
    } finally {
      await patient.close();
      await workers.close();
    }
  });
});
