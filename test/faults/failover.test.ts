import { once } from "node:events";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { statusOf } from "../../src/contract/errors.ts";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { isDatabaseUnavailable, readThenWrite } from "../../src/db/transaction.ts";
import type { IssuedVoucher } from "../../src/services/admin/issue-batch.ts";
import { acquireVoucher } from "../../src/services/marketplace/acquire-voucher.ts";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { type OwnPostgres, openOwnPostgres } from "../support/own-postgres.ts";
import { redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Failures other than killed servers: hosts that vanish without closing connections, and read-only servers.

/** A window that is always open. */
const ALWAYS = { opensAt: null, closesAt: null };

let servers: TestServers;
let partner: TestPartner;
let key: string;

beforeAll(async () => {
  servers = await openTestServers();
  partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await servers.close();
});

let orders = 0;

/** Reserves one voucher and redeems another, and returns the statuses. */
async function reserveAndRedeem(till: PartnerClient): Promise<number[]> {
  const [reserved, redeemed] = [await issueVoucher(servers.db, partner), await issueVoucher(servers.db, partner)];
  orders += 1;
  const replies = await Promise.all([
    till.reserve(reserved.code),
    till.redeem({ code: redeemed.code, externalRef: `order-${orders}` }),
  ]);
  return replies.map(({ status }) => status);
}

/** Retries with new vouchers until both calls answer 200. */
async function untilBothSucceed(till: PartnerClient): Promise<void> {
  await until(async () => (await reserveAndRedeem(till)).every((status) => status === 200), 40_000);
}

/** Runs `work` with a service that uses the given addresses instead of those of the test servers. */
async function withService(
  addresses: Partial<TestServers>,
  work: (service: {
    till: PartnerClient;
    pool: pg.Pool;
    url: string;
    api: TestApi;
    worker: TestWorker;
  }) => Promise<void>,
): Promise<void> {
  const reached = { ...servers, ...addresses };
  const [api, worker] = await Promise.all([
    startApi(reached, { REDEEM_WAIT_MS: "2000" }),
    startWorkers(reached, { REDEEM_WAIT_MS: "2000" }),
  ]);
  try {
    await work({ till: partnerClient(api.url, key), pool: api.ctx.pool, url: api.url, api, worker });
  } finally {
    await Promise.all([api.close(), worker.close()]);
  }
}

describe("connections that are lost without being closed", () => {
  it("connections that are lost without being closed are replaced, both to Postgres and to Redis", async () => {
    const [postgres, redis] = [await openTcpProxy(servers.databaseUrl), await openTcpProxy(servers.redisUrl)];
    await withService({ databaseUrl: postgres.url, redisUrl: redis.url }, async ({ till }) => {
      await untilBothSucceed(till);
      expect(postgres.lose()).toBeGreaterThan(1);
      expect(redis.lose()).toBeGreaterThan(1);
      await untilBothSucceed(till);
    });
    await Promise.all([postgres.close(), redis.close()]);
  });

  it("connections that are lost without being closed leave no voucher locked: Postgres ends an idle transaction", async () => {
    await withService({}, async ({ till, pool }) => {
      const { rows } = await pool.query("SHOW idle_in_transaction_session_timeout");
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: "10s" }]);
      const { id, code } = await issueVoucher(servers.db, partner);
      const ended = readThenWrite(
        pool,
        (tx) =>
          Promise.all([
            tx.query("SET LOCAL idle_in_transaction_session_timeout = 300"),
            tx.query("SELECT id FROM vouchers WHERE id = $1 FOR NO KEY UPDATE", [id]),
          ]),
        async (_seen, tx) => {
          expect((await till.reserve(code)).status).toBe(200);
          return { result: await tx.query("SELECT 1"), writes: [] };
        },
      );
      await expect(ended).rejects.toSatisfy(isDatabaseUnavailable);
    });
  });
});

describe("a primary whose synchronous standby is gone", () => {
  let postgres: OwnPostgres;
  let db: pg.Pool;

  beforeAll(async () => {
    postgres = await openOwnPostgres();
    await postgres.superuser.query("CREATE DATABASE vouchers");
    await migrateDatabase(postgres.url("vouchers"));
    db = new pg.Pool({ connectionString: postgres.url("vouchers"), options: "-c synchronous_commit=local" });
    return async () => {
      await db.end();
      await postgres.close();
    };
  });

  /** Names the synchronous standby, which must confirm each commit. */
  async function setStandby(name: string): Promise<void> {
    await db.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await db.query("SELECT pg_reload_conf()");
    await until(
      async () => (await db.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names === name,
    );
  }

  /** Runs a call until its COMMIT waits for the standby, and ends this wait. Returns the status, or null for an error. */
  async function cutOff(call: () => Promise<unknown>, end: "pg_cancel_backend" | "pg_terminate_backend") {
    const called = call().then(
      (reply) => (reply as { status?: number }).status ?? 200,
      () => null,
    );
    await until(async () => {
      const { rowCount } = await db.query(
        `SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'`,
      );
      return rowCount === 1;
    });
    return called;
  }

  it("a primary whose synchronous standby is gone confirms nothing that the standby may not have, also after the wait for it was cut off, and everything once it is back", async () => {
    const own = await makePartner(db);
    const { id: keyId, key } = await makeKey(db, own.organizationId);
    const [held, redeemed] = (await issueVouchers(db, own, 2)) as [IssuedVoucher, IssuedVoucher];
    await issueVouchers(db, own, 2, { windows: { claim: ALWAYS, buy: ALWAYS } });
    await withService({ databaseUrl: postgres.url("vouchers") }, async ({ url, api, worker }) => {
      const till = partnerClient(url, key);
      const order = { code: redeemed.code, externalRef: "order-1" };
      const job = redeemJob(own, keyId, redeemed.id, order.externalRef);
      const acquire = (paymentRef: string | null, userId = "user") =>
        acquireVoucher(api.ctx, { userId, way: "product", id: own.productId, paymentRef });
      const repeats: [string, () => Promise<unknown>][] = [
        ["a redeem", () => till.redeem(order)],
        ["its redemption", () => till.redemption(order.externalRef)],
        ["a second delivery of its job", () => runRedeemJob(worker.ctx, "attempt-1", job)],
        ["a reservation", () => till.reserve(held.code)],
        ["a claim", () => acquire(null)],
        ["a purchase", () => acquire("payment-1")],
        ["that nothing is left", () => acquire(null, "another user").catch(({ code }) => ({ status: statusOf(code) }))],
      ];
      await Promise.all([till.reserve(held.code), acquire(null), acquire("payment-1")]);
      await setStandby("nobody");
      expect(await cutOff(() => runRedeemJob(worker.ctx, "attempt-1", job), "pg_cancel_backend")).toBeNull();
      for (const [name, call] of repeats) {
        for (const end of ["pg_cancel_backend", "pg_terminate_backend"] as const) {
          expect([null, 503], `${name} after ${end}`).toContain(await cutOff(call, end));
        }
      }
      await setStandby("");
      for (const [, call] of repeats) await call();
      expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
    });
  });
});

describe("a read-only database, such as a standby", () => {
  /** Makes new connections read-only, as if the host name pointed to a standby. Open connections do not change. */
  async function setReadOnly(value: "on" | "off"): Promise<void> {
    const { username, pathname } = new URL(servers.databaseUrl);
    await servers.db.query(
      `ALTER ROLE ${username} IN DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${value}`,
    );
  }

  it("a read-only database, such as a standby answers 503 and is not ready, and both end when the host name points to the primary again", async () => {
    await withService({}, async ({ till, url }) => {
      await untilBothSucceed(till);
      await setReadOnly("on");
      try {
        await servers.db.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name IN ('api', 'worker')`,
        );
        await until(async () => (await fetch(`${url}/readyz`)).status === 503);
        expect(await reserveAndRedeem(till)).toEqual([503, 503]);
        // A standby may lag behind.
        expect((await till.lookUp((await issueVoucher(servers.db, partner)).code)).status).toBe(503);
      } finally {
        await setReadOnly("off");
      }
      await untilBothSucceed(till);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });
  });

  it("a read-only database, such as a standby is disconnected when it became read-only after the connection was opened", async () => {
    await withService({}, async ({ pool }) => {
      const removed = once(pool, "remove");
      const refused = readThenWrite(
        pool,
        (tx) => tx.query("SET TRANSACTION READ ONLY"),
        async () => ({ result: null, writes: [{ text: "DELETE FROM api_key_uses", values: [] }] }),
      );
      await expect(refused).rejects.toSatisfy(isDatabaseUnavailable);
      await removed;
    });
  });
});
