import { execFile, execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { expect, it } from "vitest";
import { freePort } from "../../src/local/ports.ts";
import { migrateDatabase } from "../../src/platform/db/migrate.ts";
import { findPublished } from "../../src/transparency/db/log-checkpoints.ts";
import { runNode } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { beginTlog, makeTlogFiles, ORIGIN, openSequencer, type TlogFiles } from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

/** The newest Debian package of Postgres. Its pg_dump refuses newer servers, so the test starts its own server. */
const PACKAGES = "/usr/lib/postgresql";
const bin = findPackage();

/** Under root, the servers run as the user postgres, because Postgres refuses to run as root. */
const isRoot = process.getuid?.() === 0;
const idOf = (what: "-u" | "-g") => Number(execFileSync("id", [what, "postgres"]));

it.skipIf(bin === null)(
  "after pg_restore the transparency log signs nothing until log recover, which names the lost events",
  async () => {
    const servers = await openTestServers();
    const files = makeTlogFiles();
    try {
      const server = await startServer();
      servers.onClose(server.close);
      const { dump, mirror, receipt } = await useOriginal(servers, files, server);
      const restored = await restoreDump(files, server, dump);
      const { size } = await restored.voucherctl("log", "checkpoint");
      const run = () => openSequencer({ ...servers, logUrl: server.url("restored") }, files).run();
      expect(await run()).toMatchObject({ placed: 0, refused: expect.stringMatching(/it has lost a part of the log/) });
      const recovered = await restored.voucherctl("log", "recover", "--from", mirror);
      expect(recovered).toMatchObject({ firstIndex: size, leaves: 45 - size, added: 0 });
      expect(recovered.lost).toEqual([{ firstIndex: 40, leaves: 5 }]);
      expect(await run()).toMatchObject({ published: 45, refused: null });
      const audited = await restored.voucherctl("log", "audit");
      expect(audited).toMatchObject({ leaves: 45, events: 40, lost: 5, problemCount: 0 });

      // The partner has a receipt that proves one of the lost redemptions.
      const [receiptFile, policyFile] = [join(files.directory, "receipt"), join(files.directory, "policy")];
      writeFileSync(receiptFile, receipt);
      writeFileSync(policyFile, (await findPublished(restored.db))?.policy ?? "");
      const proved = await restored.voucherctl("receipt", "verify", receiptFile, "--policy", policyFile);
      expect(proved).toMatchObject({ origin: ORIGIN, payload: expect.stringContaining('"externalRef":"order-12"') });
      expect([40, 41, 42, 43, 44]).toContain(proved.index);
      expect((await restored.db.query("SELECT FROM redemptions")).rowCount).toBe(10);
      await assertInvariants(restored.db);
    } finally {
      await servers.close();
      files.remove();
    }
  },
);

type Server = Awaited<ReturnType<typeof startServer>>;

/** Starts the package's server with two empty databases: `vouchers` and `restored`. */
async function startServer() {
  const directory = mkdtempSync(join(tmpdir(), "voucher-dump-"));
  chmodSync(directory, 0o755);
  const data = join(directory, "data");
  const port = await freePort();
  const url = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  const pools: pg.Pool[] = [];
  const open = (name: string) => {
    const pool = openLastingPool({ connectionString: url(name), max: 4 });
    pools.push(pool);
    return pool;
  };
  const close = async () => {
    await Promise.all(pools.splice(0).map((pool) => pool.end()));
    await runTool("pg_ctl", "-D", data, "-m", "fast", "-w", "stop");
    rmSync(directory, { recursive: true, force: true });
  };
  mkdirSync(data);
  if (isRoot) chownSync(data, idOf("-u"), idOf("-g"));
  await runTool("initdb", "-D", data, "-A", "trust", "-U", "postgres");
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off`;
  await runTool("pg_ctl", "-D", data, "-o", options, "-l", join(data, "server.log"), "-w", "start");
  const db = open("postgres");
  await db.query("CREATE DATABASE vouchers");
  await db.query("CREATE DATABASE restored");
  return { directory, url, open, close };
}

/** Redeems ten vouchers, dumps the database, redeems five more, and exports the log with the last five. */
async function useOriginal(servers: TestServers, files: TlogFiles, { directory, url, open }: Server) {
  await migrateDatabase(url("vouchers"));
  const db = open("vouchers");
  const partner = await makePartner(db);
  const { key } = await makeKey(db, partner.organizationId);
  const vouchers = await issueVouchers(db, partner, 30);
  await beginTlog(db, files);
  const reached = { ...servers, databaseUrl: url("vouchers") };
  const api = await startApi(reached);
  const worker = await startWorkers(reached, {
    ...files.env,
    LOG_INTERVAL_MS: "100",
    WORKER_QUEUES: "redeem,seal,log",
  });
  const till = partnerClient(api.url, key);
  const redeem = async (from: number, to: number) => {
    for (const [index, { code }] of vouchers.slice(from, to).entries())
      expect((await till.redeem({ code, externalRef: `order-${from + index}` })).status).toBe(200);
  };

  await redeem(0, 10);
  const dump = join(directory, "vouchers.dump");
  await promisify(execFile)(join(bin ?? "", "pg_dump"), ["--format=custom", `--file=${dump}`, url("vouchers")]);
  await redeem(10, 15);
  await until(async () => (await findPublished(db))?.size === 45);
  const receipt = await till.receipt("order-12");
  expect(receipt.status).toBe(200);
  await Promise.all([api.close(), worker.close()]);
  const mirror = join(files.directory, "mirror");
  const exported = { ...files.env, DATABASE_URL: url("vouchers") };
  expect((await runNode(["src/cli/main.ts", "log", "export", "--to", mirror], exported)).exitCode).toBe(0);
  return { dump, mirror, receipt: receipt.body };
}

/** Restores the dump by the runbook's steps. Returns the database, and a function that runs further steps. */
async function restoreDump(files: TlogFiles, { url, open }: Server, dump: string) {
  const voucherctl = async (...args: string[]) => {
    const env = { ...files.env, DATABASE_URL: url("restored") };
    const ended = await runNode(["src/cli/main.ts", ...args, "--json"], env);
    expect(ended.exitCode, `${args.join(" ")}: ${ended.stderr}`).toBe(0);
    return JSON.parse(ended.stdout);
  };
  const target = ["--no-owner", "--no-privileges", "--exit-on-error", `--dbname=${url("restored")}`, dump];
  await promisify(execFile)(join(bin ?? "", "pg_restore"), target);
  expect(await migrateDatabase(url("restored"))).toEqual([]);
  await voucherctl("db", "roles");
  expect(await voucherctl("chain", "verify", "--all")).toMatchObject({ broken: [] });
  await voucherctl("db", "adopt");
  return { db: open("restored"), voucherctl };
}

function findPackage(): string | null {
  const versions = existsSync(PACKAGES) ? readdirSync(PACKAGES).map(Number) : [];
  const newest = Math.max(...versions.filter((version) => version >= 15));
  const folder = join(PACKAGES, String(newest), "bin");
  if (["initdb", "pg_ctl", "pg_dump", "pg_restore"].every((tool) => existsSync(join(folder, tool)))) return folder;
  return null;
}

function runTool(tool: string, ...args: string[]): Promise<unknown> {
  const user = isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  return promisify(execFile)(join(bin ?? "", tool), args, { ...user, cwd: "/" });
}
