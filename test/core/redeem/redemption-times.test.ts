import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { trustDatabaseClock } from "../../../src/acts/change-database.ts";
import { auditedCommand } from "../../../src/acts/with-audit-entry.ts";
import { openConfirmations } from "../../../src/core/commit/confirm-reads.ts";
import { openCompleteUntil } from "../../../src/core/redeem/complete-until.ts";
import {
  advanceCompleteUntil,
  findClosedUntil,
  findCompleteUntil,
  insertRedemptions,
  selectRedemptions,
} from "../../../src/core/redeem/db/redemptions.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { newId } from "../../../src/core/voucher/ids.ts";
import { DatabaseClock } from "../../../src/platform/db/database-clock.ts";
import { write } from "../../../src/platform/db/transaction.ts";
import {
  besideTransaction,
  bypassTriggers,
  closeRedemptions,
  databaseTime,
  holdNextInsert,
  untilPast,
} from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { openWorkerContext, testConfig, type WorkerContext } from "../../support/service.ts";
import { issueVoucher, makePartner, provisioning, type TestPartner } from "../../support/supply.ts";
import { until } from "../../support/until.ts";

// Some tests insert redemptions but do not change the vouchers, so this file does not check the invariants.

let servers: TestServers;
let partner: TestPartner;
let worker: WorkerContext;

beforeAll(async () => {
  servers = await openTestServers();
  worker = openWorkerContext(testConfig(servers));
  servers.onClose(() => worker.close());
  await worker.deployment.ready();
  partner = await makePartner(servers.db);
});

afterAll(() => servers.close());

/** A time so late that it never limits completeUntil. */
const FAR = new Date("2999-01-01");

describe("a redemption that is inserted and not committed", () => {
  it("the list's completeUntil stays at the time of an uncommitted redemption until the commit", async () => {
    const slow = await issue();
    const quick = await besideTransaction(servers.db, async (outside) => {
      const redeemedAt = await now();
      await insert(outside, slow, redeemedAt);
      const quick = await redeem();
      await closeRedemptions(servers.db);
      const { completeUntil, voucherIds } = await readList();
      expect(completeUntil).toEqual(redeemedAt);
      expect(voucherIds).toEqual([]);
      await outside.query("COMMIT");
      return quick;
    });
    const { completeUntil, voucherIds } = await readList();
    expect(completeUntil.getTime()).toBeGreaterThan(quick.redeemedAt.getTime());
    expect(voucherIds).toEqual([slow, quick.id]);
  });

  it("a redemption holds back completeUntil only until its transaction or connection ends", async () => {
    const redeemedAt = await now();
    const client = await servers.db.connect();
    const ended = new Promise((resolve) => client.on("error", resolve));
    try {
      await client.query("BEGIN");
      await insert(client, await issue(), redeemedAt);
      await closeRedemptions(servers.db);
      expect((await readList()).completeUntil).toEqual(redeemedAt);
      const { rows } = await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await servers.db.query("SELECT pg_terminate_backend($1::integer)", [rows[0]?.pid]);
      await ended;
    } finally {
      client.release(true);
    }
    await until(async () => (await readList()).completeUntil.getTime() > redeemedAt.getTime());
  });

  it("an uncommitted redemption in another database does not hold back completeUntil", async () => {
    const others = await openTestServers();
    try {
      const stranger = await makePartner(others.db);
      const { id } = await issueVoucher(others.db, stranger);
      await besideTransaction(others.db, async (outside) => {
        const redeemedAt = await now();
        await insert(outside, id, redeemedAt);
        await closeRedemptions(servers.db);
        expect((await readList()).completeUntil.getTime()).toBeGreaterThan(redeemedAt.getTime());
      });
    } finally {
      await others.close();
    }
  });
});

it("the database refuses a redemption before closed_until, but accepts one at exactly closed_until", async () => {
  await advanceCompleteUntil(worker.pool, FAR);
  const { rows } = await servers.db.query<{ closed_until: Date }>("SELECT closed_until FROM redemptions_closed");
  const closedUntil = rows[0]?.closed_until as Date;
  const [early, exact] = [await issue(), await issue()];
  await besideTransaction(servers.db, async (outside) => {
    await insert(outside, exact, closedUntil);
    await expect(insert(outside, early, later(closedUntil, -1))).rejects.toMatchObject({ code: "VS001" });
  });
});

it("a worker decides a redemption again if closed_until has passed the redemption's time", async () => {
  // The end of the complete list, `closed_until`, passes the redemption's time between its decision and its insert.
  const held = await holdNextInsert(servers.db, "BEFORE", "redemptions");
  const redeeming = redeem();
  await held.isHeld();
  const decidedBefore = await now();
  await closeRedemptions(servers.db);
  await held.letGo();
  const { id, redeemedAt } = await redeeming;
  expect(redeemedAt.getTime()).toBeGreaterThan(decidedBefore.getTime());
  expect((await readRecorded(servers.db, id)).redemption?.redeemedAt).toEqual(redeemedAt);
});

it("a REPEATABLE READ or SERIALIZABLE transaction cannot insert a redemption", async () => {
  const id = await issue();
  for (const isolation of ["REPEATABLE READ", "SERIALIZABLE"]) {
    await besideTransaction(servers.db, async (outside) => {
      await outside.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
      await expect(insert(outside, id, await now())).rejects.toThrow("READ COMMITTED");
    });
  }
});

it("the list orders redemptions of the same time by voucher, and a page may end between two of them", async () => {
  const ids = [await issue(), await issue(), await issue()].toSorted();
  const redeemedAt = await now();
  await besideTransaction(servers.db, async (outside) => {
    for (const id of ids.toReversed()) await insert(outside, id, redeemedAt);
    await outside.query("COMMIT");
  });
  const before = later(redeemedAt, 1);
  const listed = [];
  for (let voucherId = ""; ; ) {
    const [next] = await selectRedemptions(worker.pool, partner.organizationId, { redeemedAt, voucherId }, before, 1);
    if (next === undefined) break;
    listed.push(next.voucherId);
    voucherId = next.voucherId;
  }
  expect(listed).toEqual(ids);
});

describe("completeUntil in answers of two processes", () => {
  it("completeUntil never decreases when two processes answer alternately", async () => {
    const [first, second] = [openProcess(), openProcess()];
    const before = await first();
    // The second process may get a later completeUntil only after a millisecond.
    const told = await until(async () => {
      await advanceCompleteUntil(worker.pool, FAR);
      const time = await second();
      return time > before ? time : null;
    });
    expect((await first()).getTime()).toBeGreaterThanOrEqual(told.getTime());
  });

  it("completeUntil never decreases while a redemption is about to be refused because of closed_until", async () => {
    const { id, redeemedAt } = await redeem();
    await closeRedemptions(servers.db);
    const told = await openProcess()();
    expect(told.getTime()).toBeGreaterThan(redeemedAt.getTime());
    await besideTransaction(servers.db, async (outside) => {
      // The lock that the trigger of redemptions acquires before it reads `closed_until`.
      const key = "(21092::bigint << 48) + (extract(epoch FROM $1::timestamptz) * 1000)::bigint";
      await outside.query(`SELECT pg_advisory_xact_lock_shared(${key})`, [redeemedAt]);
      const { completeUntil, voucherIds } = await readList();
      expect(completeUntil.getTime()).toBeGreaterThanOrEqual(told.getTime());
      expect(voucherIds).toContain(id);
    });
  });
});

describe("closed_until", () => {
  const update = (sql: string) => servers.db.query(`UPDATE redemptions_closed SET closed_until = ${sql}`);

  it("closed_until never decreases and never exceeds the database's clock, and its row cannot be deleted", async () => {
    await expect(update("timestamptz 'epoch'")).rejects.toThrow("moves forward");
    await expect(update("timestamptz 'epoch', clock_trusted_at = now()")).rejects.toThrow("moves forward");
    await expect(update("date_trunc('second', now()) + interval '1 min'")).rejects.toThrow("moves forward");
    await advanceCompleteUntil(worker.pool, FAR);
    await expect(update("closed_until, complete_until = 'epoch'")).rejects.toThrow("the complete time moves forward");
    await expect(servers.db.query("DELETE FROM redemptions_closed")).rejects.toThrow("permanent");
    await expect(servers.db.query("TRUNCATE redemptions_closed")).rejects.toThrow("permanent");
  });

  it("closed_until follows a clock jump only when an operator trusts the clock", async () => {
    const clock = new DatabaseClock(() => 0);
    // The clock has jumped ahead by an hour. This is the time without the jump, by the process's monotonic clock.
    const before = later(await now(), -3_600_000);
    await bypassTriggers(servers.db, "UPDATE redemptions_closed SET closed_until = 'epoch'", []);
    const seen = async () => ({ now: await now(), trustedAt: null, closedUntil: new Date(0) });
    clock.observe({ ...(await seen()), now: before });
    clock.observe(await seen());
    const findComplete = () => openProcess(clock)();
    const complete = await findComplete();
    expect(complete.getTime()).toBeLessThanOrEqual(before.getTime());
    clock.observe({ ...(await seen()), trustedAt: new Date() });
    expect(await findComplete()).not.toEqual(complete);
  });

  it("only `db trust-clock` decreases closed_until, with an audit entry", async () => {
    const ahead = later(await now(), 3_600_000);
    await bypassTriggers(servers.db, "UPDATE redemptions_closed SET closed_until = $1, complete_until = $1", [ahead]);
    await advanceCompleteUntil(worker.pool, FAR);
    expect((await findClosedUntil(servers.db)).closedUntil).toEqual(ahead);
    const ctx = { ...provisioning(servers.db), audited: auditedCommand("db trust-clock", {}) };
    expect(await trustDatabaseClock.run(ctx, "", {})).toEqual({ before: ahead, after: expect.any(Date) });
    const { closedUntil, trustedAt } = await findClosedUntil(servers.db);
    expect(closedUntil.getTime()).toBeLessThanOrEqual((await now()).getTime());
    expect(await findCompleteUntil(servers.db)).toEqual(closedUntil);
    expect(trustedAt).not.toBeNull();
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS n FROM audit_entries WHERE command = 'db trust-clock'",
    );
    expect(rows).toEqual([{ n: 1 }]);
  });

  it("after the clock is set back, redemptions get the time closed_until, and are listed after that time", async () => {
    const redeemSetBack = async () => {
      // The update has the effect of a clock a second ahead. On a busy machine, this second may pass too early.
      const closedUntil = later(await now(), 1_000);
      await bypassTriggers(servers.db, "UPDATE redemptions_closed SET closed_until = $1", [closedUntil]);
      const redeemed = await redeem();
      return (await now()) < closedUntil ? { closedUntil, ...redeemed } : null;
    };
    const { closedUntil, id, redeemedAt } = await until(redeemSetBack);
    expect(redeemedAt).toEqual(closedUntil);
    const { redemption, events } = await readRecorded(servers.db, id);
    expect({ redeemedAt: redemption?.redeemedAt, events: events.length }).toEqual({
      redeemedAt: closedUntil,
      events: 2,
    });
    expect((await readList()).voucherIds).not.toContain(id);
    await untilPast(servers.db, closedUntil);
    await closeRedemptions(servers.db);
    expect((await readList()).voucherIds.filter((listed) => listed === id)).toEqual([id]);
  });
});

function insert(tx: pg.PoolClient, voucherId: string, redeemedAt: Date): Promise<void> {
  const redemption = {
    voucherId,
    organizationId: partner.organizationId,
    keyId: newId("key"),
    attemptId: newAttempt(voucherId),
    ticket: null,
    redeemCode: crypto.randomUUID(),
    externalRef: crypto.randomUUID(),
  };
  return write(tx, insertRedemptions([redemption], redeemedAt));
}

/** Redeems a new voucher as a worker does. */
async function redeem(): Promise<{ id: string; redeemedAt: Date }> {
  const id = await issue();
  const reply = await runRedeemJob(worker, newAttempt(id), redeemJob(partner, newId("key"), id, crypto.randomUUID()));
  if (reply.kind !== "redeemed") throw new Error(`the reply is ${reply.kind}`);
  return { id, redeemedAt: new Date(reply.redeemedAtMs) };
}

/** Reads completeUntil and the redemptions that are listed before it. */
async function readList(): Promise<{ completeUntil: Date; voucherIds: string[] }> {
  await advanceCompleteUntil(worker.pool, FAR);
  const completeUntil = await findCompleteUntil(worker.pool);
  const start = { redeemedAt: new Date(0), voucherId: "" };
  const listed = await selectRedemptions(worker.pool, partner.organizationId, start, completeUntil, 1_000);
  return { completeUntil, voucherIds: listed.map(({ voucherId }) => voucherId) };
}

/** Returns a function that reads completeUntil as an API process does. */
function openProcess(clock = worker.deployment.clock): () => Promise<Date> {
  const { pool, deployment } = worker;
  const confirmations = openConfirmations(worker);
  const completeUntil = openCompleteUntil({
    pool,
    confirmations,
    deployment: { serverId: deployment.serverId, clock },
    partnerCalls: (_requester, call) => call(),
  });
  return () => completeUntil(partner);
}

const issue = async () => (await issueVoucher(servers.db, partner)).id;
const now = () => databaseTime(servers.db);
const later = (time: Date, ms: number) => new Date(time.getTime() + ms);
