import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { expect, it, onTestFinished, vi } from "vitest";
import type { IssuedVoucher } from "../../../src/acts/issue-batch.ts";
import { EXIT } from "../../../src/cli/exit-code.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { acquireVoucher } from "../../../src/marketplace/acquire-voucher.ts";
import { ERRORS } from "../../../src/platform/api/errors.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { isDatabaseUnavailable, readThenWrite } from "../../../src/platform/db/transaction.ts";
import { type PartnerClient, partnerClient } from "../../support/client.ts";
import { openDatabaseUser } from "../../support/database-user.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { openOwnPostgres } from "../../support/own-postgres.ts";
import { redeemJob } from "../../support/redeem-jobs.ts";
import type { TestServers } from "../../support/servers.ts";
import { startApi, startWorkers, type TestApi } from "../../support/service.ts";
import { whileWaitsEnd } from "../../support/standby-waits.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";
import { openVoucherctl } from "../../support/voucherctl.ts";
import { FaultPostgres, withClient } from "./fault-postgres.ts";

// Failures other than killed servers: hosts that disappear without closing connections, and read-only servers.

const { servers, db, keys, issue } = useService({ apis: [], workers: [] });

type Call = () => Promise<{ status: number }>;
const succeed = () => ({ status: 200 });
const fail = () => ({ status: 503 });

let orders = 0;

it("the service replaces connections to Postgres and Redis that are lost without being closed", async () => {
  const [postgres, redis] = [await openTcpProxy(servers.databaseUrl), await openTcpProxy(servers.redisUrl)];
  const { till, close } = await start({ databaseUrl: postgres.url, redisUrl: redis.url });
  await untilBothSucceed(till);
  expect(postgres.lose()).toBeGreaterThan(1);
  expect(redis.lose()).toBeGreaterThan(1);
  await untilBothSucceed(till);
  await close();
  await Promise.all([postgres.close(), redis.close()]);
});

it("connections that are lost without being closed leave no voucher locked", async () => {
  const { till, pool } = await start();
  const { rows } = await pool.query("SHOW idle_in_transaction_session_timeout");
  expect(rows).toEqual([{ idle_in_transaction_session_timeout: "10s" }]);
  const { id, code } = await issue();
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

/**
 * Makes changes for a new partner. Returns calls whose answers show these changes, which a failover could undo. No call
 * redeems the voucher of `order`.
 */
async function makeRepeats(pool: pg.Pool, api: TestApi) {
  const own = await makePartner(pool);
  const key = await makeKey(pool, own.organizationId);
  const [held, redeemed, voided] = (await issueVouchers(pool, own, 3)) as [IssuedVoucher, IssuedVoucher, IssuedVoucher];
  await issueVouchers(pool, own, 2, { windows: { claim: ALWAYS, buy: ALWAYS } });
  const till = partnerClient(api.url, key.key);
  const order = { code: redeemed.code, externalRef: "order-1" };
  const acquire = (paymentRef: string | null, userId = "user") =>
    acquireVoucher(api.ctx, { userId, way: "product", id: own.productId, paymentRef }).then(
      succeed,
      ({ code, status = ERRORS[code as keyof typeof ERRORS].status }) => ({
        status,
      }),
    );
  const repeats: [string, Call][] = [
    ["a redeem", () => till.redeem(order)],
    ["its redemption", () => till.redemption(order.externalRef)],
    ["the time before which a list is complete", () => api.ctx.completeUntil(own).then(succeed, fail)],
    ["the list of redemptions", () => till.redemptions({})],
    ["the refusal of a voided voucher", () => till.redeem({ code: voided.code, externalRef: "order-2" })],
    ["a reservation", () => till.reserve(held.code)],
    ["a claim", () => acquire(null)],
    ["a purchase", () => acquire("payment-1")],
    ["that nothing is left", () => acquire(null, "another user")],
  ];
  await voidVoucher(provisioning(pool), own.organizationId, voided.code, null);
  await Promise.all([till.reserve(held.code), acquire(null), acquire("payment-1")]);
  return { own, key, till, order, redeemed, repeats };
}

const ALWAYS = { opensAt: null, closesAt: null };

it("the promoted server does not confirm an answer that was read from a lost primary", async () => {
  const { api, close } = await start();
  const { till, order, repeats } = await makeRepeats(db, api);
  await till.redeem(order);
  vi.spyOn(api.ctx.deployment, "serverIdOf").mockReturnValue("the promoted primary");
  for (const [name, call] of repeats) expect((await call()).status, name).toBe(503);
  vi.restoreAllMocks();
  for (const [name, call] of repeats) expect((await call()).status, name).not.toBe(503);
  await close();
});

it("a primary without its synchronous standby confirms nothing until the standby is back", async () => {
  const postgres = await openOwnPostgres();
  onTestFinished(() => postgres.close());
  await postgres.superuser.query("CREATE DATABASE vouchers");
  const databaseUrl = postgres.url("vouchers");
  await migrateDatabase(databaseUrl);
  const admin = openLastingPool({ connectionString: databaseUrl, options: "-c synchronous_commit=local" });

  const setStandby = async (name: string) => {
    await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await admin.query("SELECT pg_reload_conf()");
    const shown = async () => (await admin.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names;
    await until(async () => (await shown()) === name);
  };
  /** Runs a call, and ends each of its waits for the standby. Returns the status, or null for an error. */
  const cutOff = async (call: Call, end: "pg_cancel_backend" | "pg_terminate_backend") => {
    const { result, waits } = await whileWaitsEnd(admin, call, end);
    expect(waits).toBeGreaterThan(0);
    return result === null ? null : result.status;
  };

  const { api, worker, close } = await start({ databaseUrl });
  const { own, key, till, order, redeemed, repeats: calls } = await makeRepeats(admin, api);
  const job = redeemJob(own, key.id, redeemed.id, order.externalRef);
  const delivery = () => runRedeemJob(worker.ctx, "attempt-1", job).then(succeed);
  const command = openVoucherctl({ adminUrl: databaseUrl, redisUrl: servers.redisUrl });
  const list = async () => {
    const { exitCode } = await command.run(`redemption list --org ${own.organizationId}`);
    return exitCode === EXIT.unavailable ? fail() : succeed();
  };
  const repeats: typeof calls = [
    ...calls,
    ["a second delivery of its job", delivery],
    ["voucherctl redemption list", list],
  ];
  await setStandby("nobody");
  expect(await cutOff(delivery, "pg_cancel_backend")).toBeNull();
  for (const [name, call] of repeats) {
    for (const end of ["pg_cancel_backend", "pg_terminate_backend"] as const) {
      expect([null, 503], `${name} after ${end}`).toContain(await cutOff(call, end));
    }
  }
  await setStandby("");
  for (const [, call] of repeats) await call();
  expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
  await close();
  await admin.end();
});

it("on a read-only database, the service answers 503 until the host name leads to the primary", async () => {
  const { username, pathname } = new URL(servers.databaseUrl);
  /** Makes new connections read-only, as if the host name led to a standby. Open connections stay writable. */
  const setReadOnly = (value: "on" | "off") =>
    db.query(`ALTER ROLE ${username} IN DATABASE ${pathname.slice(1)} SET default_transaction_read_only = ${value}`);
  const { till, api } = await start();
  await untilBothSucceed(till);
  await setReadOnly("on");
  try {
    await db.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name ~ '^(api|worker) '`,
    );
    await until(async () => (await fetch(`${api.url}/readyz`)).status === 503);
    expect(await reserveAndRedeem(till)).toEqual([503, 503]);
    // A standby may lag behind.
    expect((await till.lookUp((await issue()).code)).status).toBe(503);
  } finally {
    await setReadOnly("off");
  }
  await untilBothSucceed(till);
  // /readyz repeats its last result for half a second, so this waits for a new one.
  await until(async () => (await fetch(`${api.url}/readyz`)).status === 200);
});

it("a process disconnects from a database that becomes read-only", async () => {
  const { pool } = await start();
  const removed = once(pool, "remove");
  const refused = readThenWrite(
    pool,
    (tx) => tx.query("SET TRANSACTION READ ONLY"),
    async () => ({ result: null, writes: [{ text: "DELETE FROM api_key_uses", values: [] }] }),
  );
  await expect(refused).rejects.toSatisfy(isDatabaseUnavailable);
  await removed;
});

it("a process accepts a promoted synchronous standby, and refuses a standby that lacks commits", async () => {
  const directory = mkdtempSync(join(tmpdir(), "voucher-promotions-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const postgres = new FaultPostgres(join(directory, "postgres"), await findSteadyPort(), { standby: true });
  await postgres.start();
  const proxy = await openTcpProxy(postgres.url);
  await migrateDatabase(postgres.url);
  const user = openDatabaseUser({ databaseUrl: proxy.url });
  onTestFinished(async () => {
    await user.close();
    await proxy.close();
    await postgres.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const untilNewer = async () => {
    const before = user.newest()?.position ?? 0;
    await until(async () => (await user.asks()) === "ok" && (user.newest()?.position ?? 0) > before);
  };
  await untilNewer();
  const before = await postgres.startHotCopy({ promoted: true });
  await untilNewer();
  expect(user.deployment.memory?.lasting).toEqual(user.newest());
  proxy.lead(before.url);
  await until(async () => (await user.asks()) === "copied");
  proxy.lead(postgres.url);
  await untilNewer();
  postgres.cutOffStandby();
  const waits = () =>
    withClient(postgres.url, (db) => db.query("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"));
  await until(async () => (await waits()).rowCount);
  const remembered = user.newest();
  await postgres.promoteStandby();
  await until(async () => (await user.asks()) === "ok");
  expect(user.newest()?.position).toBeGreaterThanOrEqual(remembered?.position ?? 0);
  await untilNewer();
  await before.close();
});

/** Reserves one voucher and redeems another, and returns the statuses. */
async function reserveAndRedeem(till: PartnerClient): Promise<number[]> {
  const [reserved, redeemed] = [await issue(), await issue()];
  orders += 1;
  const replies = await Promise.all([
    till.reserve(reserved.code),
    till.redeem({ code: redeemed.code, externalRef: `order-${orders}` }),
  ]);
  return replies.map(({ status }) => status);
}

/** Repeats `reserveAndRedeem` with new vouchers until both calls answer 200. */
async function untilBothSucceed(till: PartnerClient): Promise<void> {
  await until(async () => (await reserveAndRedeem(till)).every((status) => status === 200));
}

/** Starts a service on the test servers, some of them at other addresses, until the end of the file. */
async function start(addresses: Partial<TestServers> = {}) {
  const reached = { ...servers, ...addresses };
  const env = { REDEEM_WAIT_MS: "2000" };
  const [api, worker] = await Promise.all([startApi(reached, env), startWorkers(reached, env)]);
  const close = () => Promise.all([api.close(), worker.close()]);
  return { api, worker, close, pool: api.ctx.pool, till: partnerClient(api.url, keys.till.key) };
}
