import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalPostgres, postgresUrl, startPostgres, stopPostgres } from "../../../src/local/postgres.ts";
import { type LocalRedis, redisUrl, startRedis, stopRedis } from "../../../src/local/redis.ts";
import { startNode } from "../../support/child-process.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { until } from "../../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../../support/voucherctl.ts";

// Uses its own servers, because these settings apply to the whole server.
let directory: string;
let postgres: LocalPostgres;
let redis: LocalRedis;
let voucherctl: Voucherctl;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "voucher-durability-"));
  chmodSync(directory, 0o755);
  postgres = { directory: join(directory, "postgres"), port: await findSteadyPort(), password: "test" };
  redis = { directory: join(directory, "redis"), port: await findSteadyPort() };
  await Promise.all([startPostgres(postgres), startRedis(redis, () => undefined)]);
  voucherctl = openVoucherctl({ adminUrl: postgresUrl(postgres), redisUrl: redisUrl(redis) });
});

afterAll(async () => {
  await Promise.all([stopPostgres(postgres), stopRedis(redis)]);
  rmSync(directory, { recursive: true, force: true });
});

it("db check on durable settings reports only the missing synchronous standby", async () => {
  const { exitCode, codes, messages } = await check();
  expect({ exitCode, codes }).toEqual({ exitCode: 1, codes: ["no_synchronous_standby"] });
  expect(messages[0]).toMatch(/synchronous_standby_names is empty/);
});

it("db check finds no risk if a standby is named and Postgres does not restart by itself after a crash", async () => {
  await onPostgres("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (s1, s2)'", "SELECT pg_reload_conf()");
  await until(async () => (await check()).codes.includes("restart_after_crash"));
  await onPostgres("ALTER SYSTEM SET restart_after_crash = off", "SELECT pg_reload_conf()");
  await until(async () => (await check()).codes.length === 0);
  expect(await check()).toEqual({ exitCode: 0, codes: [], messages: [] });
  const { stdout } = await voucherctl.run(["db", "check"]);
  expect(stdout).toMatch(/\n\nNo risk found.\n$/);
  await onPostgres("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()");
});

it("db check names every weak setting of Postgres and Redis", async () => {
  await onPostgres(
    ...["fsync = off", "full_page_writes = off"].map((set) => `ALTER SYSTEM SET ${set}`),
    "SELECT pg_reload_conf()",
  );
  const client = new Redis(redisUrl(redis));
  await client.config("SET", "appendonly", "no");
  await client.config("SET", "maxmemory-policy", "allkeys-lru");
  client.disconnect();
  const expected = [
    ...["fsync_off", "full_page_writes_off", "no_synchronous_standby"],
    ...["redis_without_aof", "redis_evicts"],
  ];
  await until(async () => (await check()).codes.length === expected.length);
  expect((await check()).codes).toEqual(expected);
});

it("db check reports that Redis does not respond, and exits with 69", async () => {
  const { exitCode, stderr } = await voucherctl.run(["db", "check"], { REDIS_URL: "redis://127.0.0.1:1" });
  expect(exitCode).toBe(69);
  expect(stderr).toMatch(/Redis does not answer/);
});

it("an API process in production logs a warning of each risk once the database is ready", async () => {
  const env = { DATABASE_URL: postgresUrl(postgres), REDIS_URL: redisUrl(redis), PORT: "0" };
  const migrated = await startNode(["src/cli/migrate.ts"], env).ended;
  expect(migrated.exitCode).toBe(0);
  const production = { NODE_ENV: "production", RESERVATION_TOKEN_SECRET: "a secret for this test", OPS_TOKEN: "off" };
  const api = startNode(["src/main.ts"], { ...env, ...production });
  await until(() => api.output().includes('"risk":"no_synchronous_standby"'));
  expect(api.output()).toMatch(/"risk":"fsync_off"/);
  expect(api.output()).toMatch(/"risk":"local_base_url","msg":"[^"]* begin with http:\/\/localhost:0, /);
  api.child.kill("SIGTERM");
  expect((await api.ended).exitCode).toBe(0);
});

async function onPostgres(...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl(postgres) });
  await client.connect();
  try {
    // Sends the statements one by one, because ALTER SYSTEM does not run inside a transaction. The session commits
    // locally, because a standby's name in the settings would make its commits wait.
    for (const statement of ["SET synchronous_commit = local", ...statements]) await client.query(statement);
  } finally {
    await client.end();
  }
}

async function check(): Promise<{ exitCode: number | null; codes: string[]; messages: string[] }> {
  const { exitCode, stdout } = await voucherctl.run(["db", "check", "--json"]);
  const { risks } = JSON.parse(stdout) as { risks: { code: string; message: string }[] };
  return { exitCode, codes: risks.map(({ code }) => code), messages: risks.map(({ message }) => message) };
}
