import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openLogSource } from "#tlog/log-source.ts";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../../src/local/postgres.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { onSnapshot } from "../../../src/platform/db/transaction.ts";
import { auditTlog } from "../../../src/transparency/audit-log.ts";
import { findPublished } from "../../../src/transparency/db/log-checkpoints.ts";
import { findTlogTree } from "../../../src/transparency/db/log-tree.ts";
import { exportTlog } from "../../../src/transparency/export-log.ts";
import { recoverTlog } from "../../../src/transparency/recover-log.ts";
import { partnerClient } from "../../support/client.ts";
import { assertInvariants } from "../../support/invariants.ts";
import { KeptNotes } from "../../support/kept-notes.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { beginTlog, makeTlogFiles, settingsOf, type TlogFiles } from "../../support/log-setup.ts";
import { promote } from "../../support/own-postgres.ts";
import { scrape } from "../../support/scrape.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { startApi, startApiUnready, startWorkers } from "../../support/service.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until, untilStarted } from "../../support/until.ts";

let servers: TestServers;
let files: TlogFiles;
let directory: string;

beforeEach(async () => {
  servers = await openTestServers();
  files = makeTlogFiles();
  directory = mkdtempSync(join(tmpdir(), "voucher-rollback-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
});

afterEach(async () => {
  await servers.close();
  files.remove();
  rmSync(directory, { recursive: true, force: true });
});

it.each([
  ["a standby that lagged and was promoted", true],
  ["a copy of the disk that was put back", false],
])("after a loss of commits, the transparency log signs nothing until a recovery: %s", async (_, isStandby) => {
  const notes = new KeptNotes();
  const [primary, copy] = [await makeServer("primary"), await makeServer("copy")];
  const running = await startWithLog(primary, copy);
  const { old, redeem, refused } = running;
  for (const index of [0, 1, 2]) expect((await redeem(index)).status).toBe(200);
  await untilStarted(async () => (await findPublished(old))?.size === 23);
  expect(await refused()).toBe(0);
  await until(() => [running.api, running.worker].every(({ ctx }) => ctx.deployment.memory !== null));
  notes.keepAnchor(files.anchor);
  const anchor = readFileSync(files.anchor, "utf8");
  const mirror = join(files.directory, "mirror");
  expect(await exportTlog(old, mirror)).toBe(23);

  await stopPostgres(primary);
  if (isStandby) writeFileSync(join(copy.directory, "standby.signal"), "");
  const db = await open(copy);
  if (isStandby) await promote(postgresUrl(copy));
  running.proxy.lead(postgresUrl(copy));
  // Repeats the lost redemption, as the runbook says.
  const repeatLost = async () => {
    await untilStarted(async () => (await redeem(3)).status === 200);
    expect((await redeem(0)).status).toBe(200);
  };
  if (isStandby) {
    await repeatLost();
    await until(async () => (await refused()) === 1);
  } else await expectCopied(running);
  expect(await findTlogTree(db)).toMatchObject({ size: 0 });
  expect([await findPublished(db), readFileSync(files.anchor, "utf8")]).toEqual([null, anchor]);

  expect(await recover(db, mirror)).toEqual({
    firstIndex: 0,
    leaves: 23,
    added: isStandby ? 2 : 0,
    lost: [{ firstIndex: 20, leaves: 3 }],
    missing: 0,
  });
  if (!isStandby) await repeatLost();
  await untilStarted(async () => (await findPublished(db))?.size === 25);
  await until(async () => (await refused()) === 0);
  expect((await redeem(4)).status).toBe(200);
  await untilStarted(async () => (await findPublished(db))?.size === 26);
  notes.keepAnchor(files.anchor);
  expect(await notes.findProblems(db)).toEqual([]);
  expect(await onSnapshot(db, auditTlog)).toMatchObject({ leaves: 26, events: 23, waiting: 0, lost: 3, problems: [] });
  await assertInvariants(db);
});

/** Copies a server whose log has begun, starts it again, and runs an API and a worker that use it through a proxy. */
async function startWithLog(primary: LocalPostgres, copy: LocalPostgres) {
  const old = await open(primary);
  await migrateDatabase(postgresUrl(primary));
  const partner = await makePartner(old);
  const { key } = await makeKey(old, partner.organizationId);
  const vouchers = await issueVouchers(old, partner, 20);
  await beginTlog(old, files);
  await stopPostgres(primary);
  execFileSync("cp", ["-a", primary.directory, copy.directory]);
  await startPostgres(primary);

  const proxy = await openTcpProxy(postgresUrl(primary));
  servers.onClose(() => proxy.close());
  const reached = { ...servers, databaseUrl: proxy.url };
  const env = { ...files.env, LOG_INTERVAL_MS: "100", METRICS_PORT: "0" };
  const api = await startApi(reached);
  const worker = await startWorkers(reached, { ...env, WORKER_QUEUES: "redeem,seal,log" });
  servers.onClose(() => Promise.all([api.close(), worker.close()]));
  const till = partnerClient(api.url, key);
  return {
    old,
    proxy,
    reached,
    api,
    worker,
    redeem: (index: number) => till.redeem({ code: vouchers[index]?.code ?? "", externalRef: `order-${index}` }),
    /** Whether the worker refuses to sign: 1 or 0. */
    refused: async () => (await scrape(worker.metricsUrl)).value("voucher_log_refused", { reason: "contradiction" }),
  };
}

/** Expects that the running API refuses the copy, and that a new API learns the refusal from Redis. */
async function expectCopied({ api, reached, redeem }: Awaited<ReturnType<typeof startWithLog>>): Promise<void> {
  await until(async () => (await readiness(api.url)).postgres === "copied");
  expect(await redeem(3)).toMatchObject({ status: 503, body: { code: "unavailable" } });
  const late = await startApiUnready(reached);
  const answer = await untilStarted(async () => {
    const seen = await readiness(late.url);
    return seen.postgres !== "unavailable" && seen;
  });
  expect(answer).toMatchObject({ postgres: "copied", error: expect.stringContaining("set back") });
  await late.close();
}

/** Recovers the log from an export, once the worker has released the lock of the log's tree. */
async function recover(db: pg.Pool, mirror: string) {
  return untilStarted(async () =>
    recoverTlog(provisioning(db), await settingsOf(files), openLogSource(mirror)).catch((error: Error) => {
      if (!error.message.includes("is in use")) throw error;
      return null;
    }),
  );
}

async function makeServer(name: string): Promise<LocalPostgres> {
  return {
    directory: join(directory, name),
    port: await findSteadyPort(),
    password: "rollback",
    settings: ["fsync=off"],
  };
}

/** Starts a server until the end of the test. Returns a pool of its superuser. */
async function open(server: LocalPostgres): Promise<pg.Pool> {
  await startPostgres(server);
  const db = openLastingPool({ connectionString: postgresUrl(server), max: 4 });
  servers.onClose(async () => {
    await db.end();
    await stopPostgres(server);
  });
  return db;
}

const readiness = async (url: string) => (await fetch(`${url}/readyz`)).json();
