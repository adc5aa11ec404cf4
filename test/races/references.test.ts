import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWorkerContext, type WorkerContext } from "../../src/context.ts";
import type { RedeemReply } from "../../src/queues/catalog.ts";
import { runRedeemJob } from "../../src/services/burn-vouchers.ts";
import { reserveVoucher } from "../../src/services/reserve-voucher.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker, testConfig } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let apis: TestApi[];
let workers: TestWorker[];
let partner: TestPartner;
let keyId: string;
let tills: PartnerClient[];

beforeAll(async () => {
  servers = await openTestServers();
  const env = { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0" };
  apis = await Promise.all([startApi(servers, env), startApi(servers, env)]);
  workers = await Promise.all([startWorkers(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  const key = await makeKey(servers.db, partner.organizationId);
  keyId = key.id;
  tills = apis.map((api) => partnerClient(api.url, key.key));
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all(apis.map((api) => api.close()));
  await Promise.all(workers.map((worker) => worker.close()));
  await servers.close();
});

/** Runs `work` with the burn lanes of two more worker processes and returns how many deadlocks the database had to break. */
async function countDeadlocks(work: (one: WorkerContext, other: WorkerContext) => Promise<void>): Promise<number> {
  // Connections made from now on look for a deadlock before they lose their patience with a lock.
  await servers.db.query(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = ''20ms''', current_database()); END $$`,
  );
  const before = await readDeadlocks();
  const others = await workerConnections();
  const [one, other] = [openWorkerContext(testConfig(servers)), openWorkerContext(testConfig(servers))];
  try {
    await work(one, other);
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
  // A connection has reported its deadlocks at the latest when it has ended.
  await until(async () => (await workerConnections()).every((pid) => others.includes(pid)));
  return (await readDeadlocks()) - before;
}

async function workerConnections(): Promise<number[]> {
  const { rows } = await servers.db.query<{ pid: number }>(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'worker'",
  );
  return rows.map(({ pid }) => pid);
}

async function readDeadlocks(): Promise<number> {
  const { rows } = await servers.db.query<{ deadlocks: number }>(
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()",
  );
  return rows[0]?.deadlocks ?? 0;
}

function burn(ctx: WorkerContext, voucherId: string, externalRef: string, ticket?: string): Promise<RedeemReply> {
  const job = redeemJob(partner, keyId, voucherId, externalRef, { ticket: ticket ?? null });
  return runRedeemJob(ctx, newAttempt(voucherId), job);
}

/** The vouchers that each reference burnt. */
async function burntBy(externalRefs: readonly string[]): Promise<Map<string, string[]>> {
  const { rows } = await servers.db.query<{ external_ref: string; voucher_id: string }>(
    "SELECT external_ref, voucher_id FROM redemptions WHERE organization_id = $1 AND external_ref = ANY ($2)",
    [partner.organizationId, externalRefs],
  );
  const byRef = Map.groupBy(rows, (row) => row.external_ref);
  return new Map([...byRef].map(([externalRef, burns]) => [externalRef, burns.map((row) => row.voucher_id)]));
}

/** Runs `work` while a burn under `externalRef` is written and not committed, held up by somebody at the end of its hold. */
async function whileBurning(
  ctx: WorkerContext,
  externalRef: string,
  work: () => Promise<void>,
): Promise<{ voucherId: string; reply: RedeemReply }> {
  const voucher = await issueVoucher(servers.db, partner);
  const api = apis[0] as TestApi;
  const { ticket } = await reserveVoucher(api.ctx, { keyId, organizationId: partner.organizationId }, voucher.code);
  const { burning } = await besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT ticket FROM reservations WHERE ticket = $1 FOR NO KEY UPDATE", [ticket]);
    const burning = burn(ctx, voucher.id, externalRef, ticket);
    await untilWaiting(servers.db, 1);
    await work();
    return { burning };
  });
  return { voucherId: voucher.id, reply: await burning };
}

describe("one reference on many vouchers", () => {
  it("burns one of 50 vouchers redeemed at once and answers that one burn to all 50", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 50);
    const replies = await Promise.all(
      vouchers.map((voucher, n) =>
        (tills[n % 2] as PartnerClient).redeem({ code: voucher.code, externalRef: "order-1" }),
      ),
    );
    expect(replies.map(({ status }) => status)).toEqual(vouchers.map(() => 200));
    expect(replies.filter(({ body }) => body.alreadyConfirmed === false)).toHaveLength(1);
    expect(new Set(replies.map(({ body }) => JSON.stringify({ ...body, alreadyConfirmed: null }))).size).toBe(1);
    expect(await burntBy(["order-1"])).toEqual(new Map([["order-1", [replies[0]?.body.voucherInstanceId]]]));
    const { rows } = await servers.db.query<{ status: string; vouchers: number }>(
      `SELECT status, count(*)::int AS vouchers FROM vouchers WHERE id = ANY ($1) GROUP BY status ORDER BY status`,
      [vouchers.map(({ id }) => id)],
    );
    expect(rows).toEqual([
      { status: "Active", vouchers: 49 },
      { status: "Redeemed", vouchers: 1 },
    ]);
  });

  it("burns a second voucher under a second reference", async () => {
    const [first, second] = await issueVouchers(servers.db, partner, 2);
    const replies = await Promise.all([
      tills[0]?.redeem({ code: first?.code, externalRef: "order-2a" }),
      tills[1]?.redeem({ code: second?.code, externalRef: "order-2b" }),
    ]);
    expect(replies.map((reply) => reply?.body)).toMatchObject([
      { alreadyConfirmed: false, voucherInstanceId: first?.id },
      { alreadyConfirmed: false, voucherInstanceId: second?.id },
    ]);
    expect(replies[0]?.body.redeemCode).not.toBe(replies[1]?.body.redeemCode);
  });

  it("lets two organizations use the same reference for a burn each", async () => {
    const stranger = await makePartner(servers.db);
    const { key } = await makeKey(servers.db, stranger.organizationId);
    const [own, foreign] = await Promise.all([issueVoucher(servers.db, partner), issueVoucher(servers.db, stranger)]);
    const [one, other] = await Promise.all([
      tills[0]?.redeem({ code: own.code, externalRef: "order-3" }),
      partnerClient(apis[1]?.url ?? "", key).redeem({ code: foreign.code, externalRef: "order-3" }),
    ]);
    expect(one?.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: own.id });
    expect(other?.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: foreign.id });
  });
});

describe("two workers that burn under the same references", () => {
  it("never lock each other up, whatever the order in which each got its jobs, and burn each reference once", async () => {
    const vouchers = (await issueVouchers(servers.db, partner, 7)).map(({ id }) => id);
    const [blocker, ...rest] = vouchers as [string, ...string[]];
    const refs = ["lock-a", "lock-m", "lock-z"];
    const deadlocks = await countDeadlocks(async (one, other) => {
      const { burning } = await besideTransaction(servers.db, async (outside) => {
        await outside.query(
          `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
           VALUES (clock_timestamp(), $1, $2, 'key', 'attempt', 'code', 'lock-m')`,
          [blocker, partner.organizationId],
        );
        const forwards = refs.map((ref, n) => burn(one, rest[n] as string, ref));
        await untilWaiting(servers.db, 1);
        const backwards = refs.toReversed().map((ref, n) => burn(other, rest[3 + n] as string, ref));
        await untilWaiting(servers.db, 2);
        return { burning: Promise.all([...forwards, ...backwards]) };
      });
      const kinds = (await burning).map((reply) => reply.kind);
      expect(kinds.toSorted()).toEqual(["burnt", "burnt", "burnt", "confirmed", "confirmed", "confirmed"]);
    });
    expect(deadlocks).toBe(0);
    expect([...(await burntBy(refs)).values()].map((burnt) => burnt.length)).toEqual([1, 1, 1]);
  });

  it("burn every one of 60 shared references once when each has a voucher of its own for it", async () => {
    const refs = Array.from({ length: 60 }, (_, n) => `shared-${n}`);
    const vouchers = (await issueVouchers(servers.db, partner, 120)).map(({ id }) => id);
    const deadlocks = await countDeadlocks(async (one, other) => {
      const replies = await Promise.all([
        ...refs.map((ref, n) => burn(one, vouchers[n] as string, ref)),
        ...refs.toReversed().map((ref, n) => burn(other, vouchers[60 + n] as string, ref)),
      ]);
      expect(replies.filter((reply) => reply.kind === "burnt")).toHaveLength(60);
      expect(replies.filter((reply) => reply.kind === "confirmed")).toHaveLength(60);
    });
    expect(deadlocks).toBe(0);
    expect([...(await burntBy(refs)).values()].every((burnt) => burnt.length === 1)).toBe(true);
  });

  it("answer confirmed and leave the voucher Active when another worker's burn commits under the reference first", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    await countDeadlocks(async (one, other) => {
      let lost: Promise<RedeemReply> | undefined;
      const { voucherId } = await whileBurning(one, "overtaken", async () => {
        lost = burn(other, voucher.id, "overtaken");
        await untilWaiting(servers.db, 2);
      });
      expect(await lost).toEqual({ kind: "confirmed" });
      expect(await burntBy(["overtaken"])).toEqual(new Map([["overtaken", [voucherId]]]));
    });
    expect(await readRecorded(servers.db, voucher.id)).toMatchObject({
      status: "Active",
      lastSequence: 1,
      redemption: null,
    });
  });

  it("decide the whole batch again when one of its references was overtaken, and burn all the others", async () => {
    const vouchers = (await issueVouchers(servers.db, partner, 5)).map(({ id }) => id);
    const refs = ["batch-0", "batch-1", "batch-2", "batch-3", "batch-4"];
    await countDeadlocks(async (one, other) => {
      let batch: Promise<RedeemReply>[] = [];
      await whileBurning(one, "batch-2", async () => {
        batch = refs.map((ref, n) => burn(other, vouchers[n] as string, ref));
        await untilWaiting(servers.db, 2);
      });
      const kinds = (await Promise.all(batch)).map((reply) => reply.kind);
      expect(kinds).toEqual(["burnt", "burnt", "confirmed", "burnt", "burnt"]);
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

  it("burn the second voucher after all when the first worker's burn is rolled back", async () => {
    const [first, second] = (await issueVouchers(servers.db, partner, 2)).map(({ id }) => id) as [string, string];
    await countDeadlocks(async (one) => {
      const { burning } = await besideTransaction(servers.db, async (outside) => {
        await outside.query(
          `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
           VALUES (clock_timestamp(), $1, $2, 'key', 'attempt', 'code', 'given-up')`,
          [first, partner.organizationId],
        );
        const burning = burn(one, second, "given-up");
        await untilWaiting(servers.db, 1);
        return { burning };
      });
      expect(await burning).toMatchObject({ kind: "burnt" });
    });
    expect(await burntBy(["given-up"])).toEqual(new Map([["given-up", [second]]]));
  });

  it("are stopped by the voucher's one redemption even when a burn got past the row lock", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    await countDeadlocks(async (one) => {
      const { burning } = await besideTransaction(servers.db, async (outside) => {
        await outside.query(
          `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
           VALUES (clock_timestamp(), $1, $2, 'key', 'attempt', 'code', 'past-the-lock')`,
          [voucher.id, partner.organizationId],
        );
        const burning = burn(one, voucher.id, "by-the-rules").catch((error: Error) => error);
        await untilWaiting(servers.db, 1);
        await outside.query("COMMIT");
        return { burning };
      });
      expect(await burning).toMatchObject({ constraint: "redemptions_pkey" });
    });
    expect(await readRecorded(servers.db, voucher.id)).toMatchObject({ status: "Active", lastSequence: 1 });
    // What no code of the service can do: take the intruder's row away again.
    await besideTransaction(servers.db, async (outside) => {
      await outside.query("SET LOCAL session_replication_role = replica");
      await outside.query("DELETE FROM redemptions WHERE voucher_id = $1", [voucher.id]);
      await outside.query("COMMIT");
    });
  });
});
