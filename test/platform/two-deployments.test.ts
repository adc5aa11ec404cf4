import pg from "pg";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { openApi } from "../../src/open/open-api.ts";
import { adoptDatabase } from "../../src/platform/db/deployment.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import {
  openWorkerContext,
  startApi,
  startApiUnready,
  startWorkers,
  type TestApi,
  testConfig,
} from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const WAIT_MS = 500;

let servers: TestServers;
let other: TestServers;
let api: TestApi;
let partner: TestPartner;
let till: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  other = await openTestServers();
  api = await startApi(servers, { REDEEM_WAIT_MS: String(WAIT_MS) });
  partner = await makePartner(servers.db);
  till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await api.close();
  await other.close();
  await servers.close();
});

it("two deployments on one Redis run only their own jobs and keep each other's reservation leases", async () => {
  const [voucher, reserved] = [await issueVoucher(servers.db, partner), await issueVoucher(servers.db, partner)];
  expect(await till.reserve(reserved.code)).toMatchObject({ status: 200 });
  const before = await servers.redis.get(servers.leaseKey(reserved.id));
  // Makes the lease a minute old. A lease of that age can be taken over.
  await servers.redis.pexpire(servers.leaseKey(reserved.id), 840_000);
  const worker = await startWorkers(other, { WORKER_QUEUES: "redeem,seal,sweep", SWEEP_INTERVAL_MS: "100" });
  const swept = () => other.redis.zcard(`${other.queuePrefix}:sweep:completed`);
  try {
    expect(await till.redeem({ code: voucher.code, externalRef: "other-deployment" })).toMatchObject({
      status: 503,
      body: { code: "redeem_timeout" },
    });
    await until(async () => (await swept()) > 2);
    expect(await servers.redis.get(servers.leaseKey(reserved.id))).toBe(before);
  } finally {
    await worker.close();
  }
});

/** Starts an API and a worker on a database, and expects them to be ready only after `repair`. */
async function expectReadyAfter(
  database: TestServers,
  unready: { postgres: string; error: unknown },
  repair: (reader: TestApi) => Promise<void>,
) {
  const worker = openWorkerContext(testConfig(database));
  const reader = await startApiUnready(database);
  let working = false;
  void worker.deployment.ready().then(() => {
    working = true;
  });
  try {
    // On a busy machine, Postgres may answer some probes too late.
    const found = await until(async () => {
      const response = await fetch(`${reader.url}/readyz`);
      const body = await response.json();
      return body.postgres === unready.postgres ? { status: response.status, ...body } : null;
    });
    expect(found).toMatchObject({ status: 503, ...unready });
    expect(working).toBe(false);
    await repair(reader);
    await worker.deployment.ready();
    await until(async () => (await fetch(`${reader.url}/readyz`)).ok);
  } finally {
    await reader.close();
    await worker.close();
  }
}

it("the API and workers refuse a copy of the database until an operator adopts it as its own deployment", async () => {
  const voucher = await issueVoucher(servers.db, partner);
  await withCopy(async (copy) => {
    const copied = { postgres: "copied", error: expect.stringContaining("db adopt") };
    await expectReadyAfter(copy, copied, async (reader) => {
      const foreign = partnerClient(reader.url, "pvk_anything");
      expect((await foreign.lookUp(voucher.code)).status).toBeGreaterThanOrEqual(401);
      expect(await adoptDatabase(copy.db)).not.toBe(servers.deploymentId);
      await reader.ctx.deployment.ready();
      expect(reader.ctx.deployment.serverId).not.toBe(api.ctx.deployment.serverId);
    });
  });
});

it("an API refuses calls of issuers and changes by operators if OPS_DATABASE_URL names another database", async () => {
  const strayed = await startApi(servers, {
    ISSUER_API: "true",
    OPS_WRITABLE: "true",
    OPS_DATABASE_URL: other.adminUrl,
  });
  const key = await makeKey(servers.db, partner.organizationId, { scopes: ["voucher.issue"] });
  const response = await fetch(`${strayed.url}/issuer/brands`, { headers: { "X-Api-Key": key.key } });
  expect({ status: response.status, ...(await response.json()) }).toMatchObject({ status: 503, code: "unavailable" });
  await expect(strayed.ctx.console?.pool.query("SELECT 1")).rejects.toThrow("leads to another server");
  await strayed.close();
});

it("a process refuses connections to a copy of its database that has replaced the original", async () => {
  const ctx = openApi(testConfig(other));
  await ctx.deployment.ready();
  await adoptDatabase(other.db);
  await other.db.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND application_name LIKE 'api (%'`,
  );
  await until(async () =>
    ctx.pool.query("SELECT 1").then(
      () => false,
      (error: Error) => error.message.includes("Restart the process"),
    ),
  );
  await ctx.close();
});

it("an API is not ready, and workers run no jobs, while the database lacks a migration", async () => {
  const lagging = await openTestServers();
  const last = "DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations) RETURNING id, name, hash";
  const { rows } = await lagging.db.query(last);
  // Only the log shows the names of migrations.
  const sentence = /^The database lacks migrations of this release\. Run: npm run migrate( No answer from Redis\.)?$/;
  const outdated = { postgres: "outdated", error: expect.stringMatching(sentence) };
  await expectReadyAfter(lagging, outdated, async () => {
    const { id, name, hash } = rows[0];
    await lagging.db.query("INSERT INTO migrations (id, name, hash) VALUES ($1, $2, $3)", [id, name, hash]);
  });
  await lagging.close();
});

/** Runs `work` with a copy of the database, such as a restored backup. */
async function withCopy(work: (copy: TestServers) => Promise<void>): Promise<void> {
  const original = new URL(servers.ownerUrl).pathname.slice(1);
  const name = `${original}_copy`;
  const admin = new pg.Client({ connectionString: inject("databaseUrl") });
  await admin.connect();
  const at = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).href;
  // Postgres copies a database only while it has no connections.
  await admin.query(`ALTER DATABASE ${original} WITH ALLOW_CONNECTIONS false`);
  await admin.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [original]);
  await until(() =>
    admin.query(`CREATE DATABASE ${name} TEMPLATE ${original}`).then(
      () => true,
      () => false,
    ),
  );
  await admin.query(`ALTER DATABASE ${original} WITH ALLOW_CONNECTIONS true`);
  const db = openLastingPool({ connectionString: at(servers.ownerUrl), max: 2 });
  try {
    await work({ ...servers, db, databaseUrl: at(servers.databaseUrl), ownerUrl: at(servers.ownerUrl) });
  } finally {
    await db.end();
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  }
}
