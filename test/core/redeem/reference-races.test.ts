import type pg from "pg";
import { beforeAll, describe, expect, it } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import type { RedeemReply } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { reserveVoucher } from "../../../src/core/reserve/reserve-voucher.ts";
import type { PartnerClient, Reply } from "../../support/client.ts";
import {
  besideTransaction,
  bypassTriggers,
  untilWaiting,
  waitLongForLocks,
} from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { openWorkerContext, testConfig, type WorkerContext } from "../../support/service.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

// REDEEM_WAIT_MS is so long that even a busy machine answers every redeem.
const service = useService({ apis: [{}, {}], workers: [{}, {}], env: { REDEEM_WAIT_MS: "60000" } });
const { servers, api, partner, keys, tills, issue } = service;

beforeAll(async () => {
  // Opens the processes' connections. On a busy machine, the first calls may fail because this takes too long.
  await untilStarted(async () => {
    const replies = await redeemAtOnce(await issueVouchers(servers.db, partner, 50), (id) => `warm-${id}`);
    return replies.every(({ status }) => status === 200);
  });
});

describe("one reference on many vouchers", () => {
  it("50 simultaneous redeems with one reference redeem one of 50 vouchers, and 49 answer otherVoucher", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 50);
    const replies = await redeemAtOnce(vouchers, () => "order-1");
    expect(replies.map(({ status }) => status)).toEqual(vouchers.map(() => 200));
    expect(replies.filter(({ body }) => body.alreadyConfirmed === false)).toHaveLength(1);
    const redeemed = replies[0]?.body.voucherInstanceId;
    expect(replies.map(({ body }) => body.otherVoucher)).toEqual(
      vouchers.map(({ id }) => (id === redeemed ? undefined : true)),
    );
    const common = replies.map(({ body: { alreadyConfirmed, otherVoucher, ...body } }) => JSON.stringify(body));
    expect(new Set(common).size).toBe(1);
    expect(await redeemedBy(["order-1"])).toEqual(new Map([["order-1", [replies[0]?.body.voucherInstanceId]]]));
    const { rows } = await servers.db.query<{ status: string; vouchers: number }>(
      `SELECT status, count(*)::int AS vouchers FROM vouchers WHERE id = ANY ($1) GROUP BY status ORDER BY status`,
      [vouchers.map(({ id }) => id)],
    );
    expect(rows).toEqual([
      { status: "Active", vouchers: 49 },
      { status: "Redeemed", vouchers: 1 },
    ]);
  });
});

describe("two workers that redeem under the same references", () => {
  it("two workers with the same references never deadlock, and redeem each reference once", async () => {
    const vouchers = (await issueVouchers(servers.db, partner, 7)).map(({ id }) => id);
    const [blocker, ...rest] = vouchers as [string, ...string[]];
    const refs = ["lock-a", "lock-m", "lock-z"];
    const deadlocks = await countDeadlocks(async (one, other) => {
      const { redeeming } = await besideTransaction(servers.db, async (outside) => {
        await insertRedemption(outside, blocker, "lock-m");
        const forwards = refs.map((ref, n) => redeem(one, rest[n] as string, ref));
        await untilWaiting(servers.db, 1);
        const backwards = refs.toReversed().map((ref, n) => redeem(other, rest[3 + n] as string, ref));
        await untilWaiting(servers.db, 2);
        return { redeeming: Promise.all([...forwards, ...backwards]) };
      });
      const kinds = (await redeeming).map((reply) => reply.kind);
      expect(kinds.toSorted()).toEqual(["confirmed", "confirmed", "confirmed", "redeemed", "redeemed", "redeemed"]);
    });
    expect(deadlocks).toBe(0);
    expect([...(await redeemedBy(refs)).values()].map((redeemed) => redeemed.length)).toEqual([1, 1, 1]);
  });

  it("a redeem batch is decided again if another worker commits one of its references first", async () => {
    const vouchers = (await issueVouchers(servers.db, partner, 5)).map(({ id }) => id);
    const refs = ["batch-0", "batch-1", "batch-2", "batch-3", "batch-4"];
    await countDeadlocks(async (one, other) => {
      let batch: Promise<RedeemReply>[] = [];
      await whileRedeeming(one, "batch-2", async () => {
        batch = refs.map((ref, n) => redeem(other, vouchers[n] as string, ref));
        await untilWaiting(servers.db, 2);
      });
      const kinds = (await Promise.all(batch)).map((reply) => reply.kind);
      expect(kinds).toEqual(["redeemed", "redeemed", "confirmed", "redeemed", "redeemed"]);
    });
    const states = await Promise.all(vouchers.map((id) => readRecorded(servers.db, id)));
    expect(states.map(({ status, lastSequence }) => `${status} ${lastSequence}`)).toEqual([
      "Redeemed 2",
      "Redeemed 2",
      "Active 1",
      "Redeemed 2",
      "Redeemed 2",
    ]);
  });

  it("a worker redeems a second voucher under a reference whose first redemption was rolled back", async () => {
    const [first, second] = (await issueVouchers(servers.db, partner, 2)).map(({ id }) => id) as [string, string];
    await countDeadlocks(async (one) => {
      const { redeeming } = await besideTransaction(servers.db, async (outside) => {
        await insertRedemption(outside, first, "given-up");
        const redeeming = redeem(one, second, "given-up");
        await untilWaiting(servers.db, 1);
        return { redeeming };
      });
      expect(await redeeming).toMatchObject({ kind: "redeemed" });
    });
    expect(await redeemedBy(["given-up"])).toEqual(new Map([["given-up", [second]]]));
  });

  it("two workers cannot redeem a voucher twice, even without the lock on the voucher's row", async () => {
    const voucher = await issue();
    await countDeadlocks(async (one) => {
      const { redeeming } = await besideTransaction(servers.db, async (outside) => {
        await insertRedemption(outside, voucher.id, "past-the-lock");
        const redeeming = redeem(one, voucher.id, "after-the-lock").catch((error: Error) => error);
        await untilWaiting(servers.db, 1);
        await outside.query("COMMIT");
        return { redeeming };
      });
      expect(await redeeming).toMatchObject({ message: expect.stringMatching(/unique constraint "redemptions_pkey/) });
    });
    expect(await readRecorded(servers.db, voucher.id)).toMatchObject({ status: "Active", lastSequence: 1 });
    // Removes the inserted row, which the service itself cannot do.
    await bypassTriggers(servers.db, "DELETE FROM redemptions WHERE voucher_id = $1", [voucher.id]);
  });
});

/** Redeems vouchers simultaneously at both APIs. */
function redeemAtOnce(vouchers: IssuedVoucher[], refOf: (id: string) => string): Promise<Reply[]> {
  const redeems = vouchers.map(({ id, code }, n) =>
    (tills[n % 2] as PartnerClient).redeem({ code, externalRef: refOf(id) }),
  );
  return Promise.all(redeems);
}

/** Runs `work` with two more workers' group committers (they redeem in batches). Returns the number of deadlocks. */
async function countDeadlocks(work: (one: WorkerContext, other: WorkerContext) => Promise<void>): Promise<number> {
  // Makes new connections detect a deadlock before their lock timeout ends the wait.
  await servers.db.query(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', current_database()); END $$`,
  );
  const before = await readDeadlocks();
  const contexts = [openWorkerContext(testConfig(servers)), openWorkerContext(testConfig(servers))] as const;
  const pids = new Set<unknown>();
  for (const { pool } of contexts) {
    waitLongForLocks(pool);
    pool.on("acquire", (client) => pids.add((client as { processID?: number }).processID));
  }
  await Promise.all(contexts.map(({ deployment }) => deployment.ready()));
  try {
    await work(...contexts);
  } finally {
    await Promise.all(contexts.map((ctx) => ctx.close()));
  }
  // Postgres counts a connection's deadlocks at the latest when the connection ends.
  await until(async () => {
    const { rows } = await servers.db.query("SELECT FROM pg_stat_activity WHERE pid = ANY ($1)", [[...pids]]);
    return rows.length === 0;
  });
  return (await readDeadlocks()) - before;
}

async function readDeadlocks(): Promise<number> {
  const { rows } = await servers.db.query<{ deadlocks: number }>(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return rows[0]?.deadlocks ?? 0;
}

function redeem(ctx: WorkerContext, voucherId: string, externalRef: string, ticket?: string): Promise<RedeemReply> {
  const job = redeemJob(partner, keys.till.id, voucherId, externalRef, { ticket: ticket ?? null });
  return runRedeemJob(ctx, newAttempt(voucherId), job);
}

async function redeemedBy(externalRefs: readonly string[]): Promise<Map<string, string[]>> {
  const { rows } = await servers.db.query<{ external_ref: string; voucher_id: string }>(
    "SELECT external_ref, voucher_id FROM redemptions WHERE organization_id = $1 AND external_ref = ANY ($2)",
    [partner.organizationId, externalRefs],
  );
  const byRef = Map.groupBy(rows, (row) => row.external_ref);
  return new Map(
    [...byRef].map(([externalRef, redemptions]) => [externalRef, redemptions.map((row) => row.voucher_id)]),
  );
}

/** Runs `work` while a redemption under `externalRef` waits for its reservation's row before it can commit. */
async function whileRedeeming(ctx: WorkerContext, externalRef: string, work: () => Promise<void>): Promise<void> {
  const voucher = await issue();
  const caller = { keyId: keys.till.id, organizationId: partner.organizationId, sandbox: false };
  const { ticket } = await reserveVoucher(api.ctx, caller, voucher.code);
  const { redeeming } = await besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT ticket FROM reservations WHERE ticket = $1 FOR NO KEY UPDATE", [ticket]);
    const redeeming = redeem(ctx, voucher.id, externalRef, ticket);
    await untilWaiting(servers.db, 1);
    await work();
    return { redeeming };
  });
  await redeeming;
}

/** Inserts a redemption of a voucher under a reference, without the row lock. */
const insertRedemption = (tx: pg.ClientBase, voucherId: string, externalRef: string) =>
  tx.query(
    `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     VALUES (date_trunc('milliseconds', clock_timestamp()), $1, $2, 'key', 'attempt', 'code', $3)`,
    [voucherId, partner.organizationId, externalRef],
  );
