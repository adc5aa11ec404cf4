import { once } from "node:events";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isDatabaseUnavailable, readThenWrite } from "../../src/db/transaction.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// Failures other than killed servers: hosts that vanish without closing connections, and read-only servers.

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
  work: (service: { till: PartnerClient; pool: pg.Pool; url: string }) => Promise<void>,
): Promise<void> {
  const reached = { ...servers, ...addresses };
  const [api, worker] = await Promise.all([
    startApi(reached, { REDEEM_WAIT_MS: "2000" }),
    startWorkers(reached, { REDEEM_WAIT_MS: "2000" }),
  ]);
  try {
    await work({ till: partnerClient(api.url, key), pool: api.ctx.pool, url: api.url });
  } finally {
    await Promise.all([api.close(), worker.close()]);
  }
}

describe("connections that are lost without being closed", () => {
  it("are replaced, both to Postgres and to Redis", async () => {
    const [postgres, redis] = [await openTcpProxy(servers.databaseUrl), await openTcpProxy(servers.redisUrl)];
    await withService({ databaseUrl: postgres.url, redisUrl: redis.url }, async ({ till }) => {
      await untilBothSucceed(till);
      expect(postgres.lose()).toBeGreaterThan(1);
      expect(redis.lose()).toBeGreaterThan(1);
      await untilBothSucceed(till);
    });
    await Promise.all([postgres.close(), redis.close()]);
  });

  it("leave no voucher locked: Postgres ends an idle transaction", async () => {
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

describe("a read-only database, such as a standby", () => {
  /** Makes new connections read-only, as if the host name pointed to a standby. Open connections do not change. */
  async function setReadOnly(value: "on" | "off"): Promise<void> {
    const { username, pathname } = new URL(servers.databaseUrl);
    await servers.db.query(
      `ALTER ROLE ${username} IN DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${value}`,
    );
  }

  it("answers 503 and is not ready, and both end when the host name points to the primary again", async () => {
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

  it("is disconnected when it became read-only after the connection was opened", async () => {
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
