import { once } from "node:events";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isDatabaseUnavailable, lookThenWrite } from "../../src/db/transaction.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

// What a killed server never shows: hosts that are gone without closing a connection, and servers that only read.

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

/** Holds one voucher and burns another, and returns the statuses. */
async function move(till: PartnerClient): Promise<number[]> {
  const [held, burned] = [await issueVoucher(servers.db, partner), await issueVoucher(servers.db, partner)];
  orders += 1;
  const replies = await Promise.all([
    till.reserve(held.code),
    till.redeem({ code: burned.code, externalRef: `order-${orders}` }),
  ]);
  return replies.map(({ status }) => status);
}

/** Moves until both moves are done. */
async function untilMoved(till: PartnerClient): Promise<void> {
  await until(async () => (await move(till)).every((status) => status === 200), 40_000);
}

/** Starts a service behind the proxies that are given, and ends it after `work`. */
async function withService(
  behind: Partial<TestServers>,
  work: (service: { till: PartnerClient; pool: pg.Pool; url: string }) => Promise<void>,
): Promise<void> {
  const reached = { ...servers, ...behind };
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

describe("connections that are lost without a word", () => {
  it("are given up and replaced, those to Postgres and those to Redis", async () => {
    const [postgres, redis] = [await openTcpProxy(servers.databaseUrl), await openTcpProxy(servers.redisUrl)];
    await withService({ databaseUrl: postgres.url, redisUrl: redis.url }, async ({ till }) => {
      await untilMoved(till);
      expect(postgres.lose()).toBeGreaterThan(1);
      expect(redis.lose()).toBeGreaterThan(1);
      await untilMoved(till);
    });
    await Promise.all([postgres.close(), redis.close()]);
  });

  it("leave no voucher locked: the server ends a transaction in which nothing is asked", async () => {
    await withService({}, async ({ till, pool }) => {
      const { rows } = await pool.query("SHOW idle_in_transaction_session_timeout");
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: "10s" }]);
      const { id, code } = await issueVoucher(servers.db, partner);
      const ended = lookThenWrite(
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

describe("a database that only reads, as a standby does", () => {
  /** As if the database's name led the service to a standby, or to the primary again. Open connections stay where they are. */
  async function onlyRead(is: "on" | "off"): Promise<void> {
    const { username, pathname } = new URL(servers.databaseUrl);
    await servers.db.query(
      `ALTER ROLE ${username} IN DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${is}`,
    );
  }

  it("is not ready, makes moves come again, and is left as soon as the name leads to the primary", async () => {
    await withService({}, async ({ till, url }) => {
      await untilMoved(till);
      await onlyRead("on");
      try {
        await servers.db.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name IN ('api', 'worker')`,
        );
        await until(async () => (await fetch(`${url}/readyz`)).status === 503);
        expect(await move(till)).toEqual([503, 503]);
        // What a standby knows may be old.
        expect((await till.lookUp((await issueVoucher(servers.db, partner)).code)).status).toBe(503);
      } finally {
        await onlyRead("off");
      }
      await untilMoved(till);
      expect((await fetch(`${url}/readyz`)).status).toBe(200);
    });
  });

  it("is not kept when it was the primary as the connection was opened", async () => {
    await withService({}, async ({ pool }) => {
      const removed = once(pool, "remove");
      const refused = lookThenWrite(
        pool,
        (tx) => tx.query("SET TRANSACTION READ ONLY"),
        async () => ({ result: null, writes: [{ text: "DELETE FROM api_key_uses", values: [] }] }),
      );
      await expect(refused).rejects.toSatisfy(isDatabaseUnavailable);
      await removed;
    });
  });
});
