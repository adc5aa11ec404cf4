import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { explainMigration } from "../../../src/cli/explain-migration.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import type { Reply } from "../../support/client.ts";
import { besideTransaction } from "../../support/outside-transaction.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useDatabase, useService } from "../../support/use-service.ts";

const MIGRATIONS = fileURLToPath(new URL("../../../migrations", import.meta.url));

const { servers } = useDatabase();
const service = useService();
let directory: string;
/** What `migrateDatabase` reported about its waits, and when it first did so on the monotonic clock. */
let reported: string[];
let reportedAt: number;
const onWait = (sentence: string) => {
  if (reported.push(sentence) === 1) reportedAt = performance.now();
};
/** How long the reader continues after a migration has reported a wait: longer than two attempts. Milliseconds. */
const HOLD_MS = 8_000;
/** Maximum wait of a call: shorter than `HOLD_MS`, and much longer than a migration's attempt. Milliseconds. */
const BLOCKED_MAX_MS = 6_000;

beforeAll(async () => {
  await servers.db.query("CREATE TABLE busy (id integer); CREATE TABLE quiet (id integer)");
  directory = copyMigrations();
});

beforeEach(() => {
  reported = [];
  reportedAt = Number.POSITIVE_INFINITY;
});

afterAll(() => rmSync(directory, { recursive: true }));

describe("a migration of a table that a long transaction is reading", () => {
  let reader: pg.Client;

  beforeEach(async () => {
    reader = new pg.Client({ connectionString: servers.ownerUrl, application_name: "nightly dump" });
    await reader.connect();
    await reader.query("BEGIN; SELECT * FROM busy");
  });

  afterEach(() => reader.end());

  it("a migration of a table that is being read blocks no query for long, and succeeds later", async () => {
    const first = addMigration("quiet", "ALTER TABLE quiet ADD COLUMN before integer");
    const second = addMigration(
      "busy",
      "ALTER TABLE quiet ADD COLUMN beside integer; ALTER TABLE busy ADD COLUMN added integer",
    );
    let ended = false;
    const migrated = migrateDatabase(servers.ownerUrl, { directory, onWait }).finally(() => {
      ended = true;
    });
    const waits: number[] = [];
    // Whether a query has waited until a migration's attempt released its lock.
    const hasWaited = () => waits.some((ms) => ms > 50);
    await until(async () => {
      const askedAt = performance.now();
      await servers.db.query("SELECT * FROM busy");
      waits.push(performance.now() - askedAt);
      return performance.now() > reportedAt + HOLD_MS && hasWaited();
    });
    expect(ended).toBe(false);
    expect(Math.max(...waits)).toBeLessThan(BLOCKED_MAX_MS);
    expect(reported).toEqual([
      expect.stringMatching(/^Waiting for table busy, which is held by process \d+ \(nightly dump\)\.$/),
    ]);
    expect(await columnsOf("quiet")).toEqual(["id", "before"]);
    await reader.query("COMMIT");
    expect(await migrated).toEqual([first, second]);
    expect(await columnsOf("quiet")).toEqual(["id", "before", "beside"]);
    expect(await columnsOf("busy")).toEqual(["id", "added"]);
  });

  it("a migration of a table that is being read gives up after its maximum wait, and names the session", async () => {
    const file = addMigration("busy_again", "ALTER TABLE busy ADD COLUMN again integer");
    const refused = await migrateDatabase(servers.ownerUrl, { directory, waitMaxMs: 8_000 }).catch((error) => error);
    expect(explainMigration(refused)).toEqual({
      message: expect.stringMatching(
        /^The migration gave up after \d+ seconds of waiting for table busy, .* by process \d+ \(nightly dump\)\.$/,
      ),
      hint: expect.stringContaining("Run this again"),
      exitCode: 69,
    });
    expect(await columnsOf("busy")).not.toContain("again");
    await reader.query("COMMIT");
    expect(await migrateDatabase(servers.ownerUrl, { directory })).toEqual([file]);
  });
});

/** The number of vouchers for half a minute of calls: two every 40 ms. */
const CALLED_MAX = 850;

it("at most a tenth of calls fail while a migration waits for a long read of vouchers", async () => {
  const { db, till } = service;
  const vouchers = await issueVouchers(db, service.partner, CALLED_MAX);
  await till.redeem({ code: vouchers.pop()?.code, externalRef: "warm" });
  const directory = copyMigrations();
  const sql = "ALTER TABLE batches ADD COLUMN added integer; ALTER TABLE vouchers ADD COLUMN added integer";
  const file = addMigration("added", sql, directory);
  const answers: { status: number; tookMs: number }[] = [];
  const call = async (request: Promise<Reply>) => {
    const startedAt = performance.now();
    answers.push({ status: (await request).status, tookMs: performance.now() - startedAt });
  };
  const applied = await besideTransaction(db, async (outside) => {
    await outside.query("SELECT count(*) FROM vouchers");
    const migrated = migrateDatabase(service.servers.ownerUrl, { directory, onWait });
    const calls: Promise<void>[] = [];
    // A caller sends its calls without waiting for the other callers.
    while (performance.now() < reportedAt + HOLD_MS || calls.length <= 50) {
      const { code } = vouchers.pop() ?? expect.fail("the run did not report its wait");
      calls.push(call(till.lookUp(code)), call(till.redeem({ code, externalRef: code })));
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    await outside.query("COMMIT");
    await Promise.all(calls);
    return migrated;
  });
  expect(applied).toEqual([file]);
  expect(reported).toEqual([expect.stringMatching(/^Waiting for table (vouchers|batches)/)]);
  expect(answers.length).toBeGreaterThan(50);
  expect(answers.filter(({ status }) => status !== 200).length).toBeLessThanOrEqual(answers.length / 10);
  expect(Math.max(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(BLOCKED_MAX_MS);
  rmSync(directory, { recursive: true });
});

it("of two simultaneous migration runs, one waits for the other, and each migration is applied once", async () => {
  const file = addMigration("slow", "ALTER TABLE busy ADD COLUMN slow integer");
  const [one, other] = await besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT * FROM busy");
    const runs = [1, 2].map(() => migrateDatabase(servers.ownerUrl, { directory, onWait }));
    await until(() => reported.length === 2);
    await outside.query("COMMIT");
    return Promise.all(runs);
  });
  expect([...(one ?? []), ...(other ?? [])]).toEqual([file]);
  expect(reported.sort()).toEqual(["Waiting for another migration.", expect.stringMatching(/^Waiting for table busy/)]);
});

it("an index that is built during a long transaction is valid afterwards, and blocks no writer", async () => {
  const sql = "-- postgres-migrations disable-transaction\nCREATE INDEX CONCURRENTLY quiet_by_id ON quiet (id)";
  const file = addMigration("index", sql);
  const state = async () =>
    (await servers.db.query("SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('quiet_by_id')"))
      .rows[0];
  const applied = await besideTransaction(servers.db, async (outside) => {
    await outside.query("INSERT INTO quiet (id) VALUES (1)");
    const migrated = migrateDatabase(servers.ownerUrl, { directory });
    // The first attempt failed, so its index is invalid.
    const building = `SELECT FROM pg_stat_activity
      WHERE query LIKE '%CREATE INDEX%' AND state = 'active' AND pid <> pg_backend_pid()`;
    await until(async () => {
      if ((await state())?.valid !== false) return false;
      return (await servers.db.query(building)).rowCount === 0;
    });
    await servers.db.query("INSERT INTO quiet (id) VALUES (2)");
    await outside.query("COMMIT");
    return migrated;
  });
  expect([applied, await state()]).toEqual([[file], { valid: true }]);
});

it("a migration run gives up when another run takes too long", async () => {
  await besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT pg_advisory_xact_lock(-8525285245963000605)");
    const refused = await migrateDatabase(servers.ownerUrl, { waitMaxMs: 500 }).catch((error) => error);
    expect(explainMigration(refused)).toMatchObject({
      message: expect.stringContaining("waiting for another migration"),
      exitCode: 69,
    });
  });
});

function copyMigrations(): string {
  const copy = mkdtempSync(join(tmpdir(), "voucher-migrations-"));
  cpSync(MIGRATIONS, copy, { recursive: true });
  return copy;
}

function addMigration(name: string, sql: string, to = directory): string {
  const file = `${String(readdirSync(to).length + 1).padStart(5, "0")}_${name}.sql`;
  writeFileSync(join(to, file), sql);
  return file;
}

async function columnsOf(table: string): Promise<string[]> {
  const { rows } = await servers.db.query<{ column_name: string }>(
    "SELECT column_name FROM information_schema.columns WHERE table_name = $1 ORDER BY ordinal_position",
    [table],
  );
  return rows.map((row) => row.column_name);
}
