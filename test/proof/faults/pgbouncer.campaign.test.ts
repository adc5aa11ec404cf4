import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { UnmetRequirement } from "../../../src/platform/db/session.ts";
import { hasProgram } from "../../support/has-program.ts";
import { type OwnPostgres, openOwnPostgres } from "../../support/own-postgres.ts";
import { startPgBouncer } from "../../support/pgbouncer.ts";
import { expectRedeems } from "../../support/redeem-on.ts";
import { openServicePool, openTestServers, type TestServers } from "../../support/servers.ts";
import { startApiUnready } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { openVoucherctl } from "../../support/voucherctl.ts";

const OWNER = { name: "keeper", password: "the-owners-own-password" };
const API = { name: "pva_api", password: "the-processes-own-password" };

describe.skipIf(!hasProgram("pgbouncer"))("PgBouncer", () => {
  let postgres: OwnPostgres;
  let servers: TestServers;
  const voucherctl = openVoucherctl({ adminUrl: "", redisUrl: "" });
  let ownerUrl: string;
  let apiUrl: string;

  beforeAll(async () => {
    postgres = await openOwnPostgres();
    servers = await openTestServers();
    await postgres.superuser.query(`CREATE ROLE ${OWNER.name} LOGIN CREATEROLE PASSWORD '${OWNER.password}'`);
    await postgres.superuser.query(`CREATE DATABASE vouchers OWNER ${OWNER.name}`);
    ownerUrl = postgres.url("vouchers", OWNER);
    apiUrl = postgres.url("vouchers", API);
  });

  afterAll(async () => {
    await servers.close();
    await postgres.close();
  });

  async function start(settings: readonly string[], ofDatabases?: string) {
    const { port } = new URL(ownerUrl);
    const pgBouncer = await startPgBouncer({ port, logins: [ownerUrl, apiUrl] }, settings, ofDatabases);
    onTestFinished(() => pgBouncer.close());
    return { owner: pgBouncer.through(ownerUrl), api: pgBouncer.through(apiUrl) };
  }

  /** Reads the limits of the service's sessions, as the Postgres server sees them. */
  async function limitsOf(databaseUrl: string): Promise<unknown> {
    const pool = openServicePool(databaseUrl);
    const { rows } = await pool.query(
      `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
              current_setting('idle_in_transaction_session_timeout') AS idle,
              current_setting('plan_cache_mode') AS plans`,
    );
    await pool.end();
    return rows[0];
  }

  it.each<[string, string[], string?]>([
    ["as Debian delivers it", []],
    ["that ignores startup parameters", ["ignore_startup_parameters = extra_float_digits,options,statement_timeout"]],
    [
      "that resets nothing, and sets the German dates of each connection",
      ["server_reset_query ="],
      "connect_query='SET DateStyle = German'",
    ],
  ])("the service works through PgBouncer in session mode: %s", async (_title, settings, ofDatabases) => {
    const through = await start(settings, ofDatabases);
    await migrateDatabase(through.owner);
    const env = { DATABASE_URL: through.owner, PVA_API_PASSWORD: API.password };
    expect(await voucherctl.run(["db", "roles"], env)).toMatchObject({ exitCode: 0, stderr: "" });
    for (let run = 0; run < 2; run++)
      await expectRedeems(servers, { ownerUrl: through.owner, databaseUrl: through.api });
    expect(await limitsOf(through.api)).toEqual({
      statement: "10s",
      lock: "250ms",
      idle: "10s",
      plans: "force_generic_plan",
    });
    const checked = await voucherctl.run(["db", "check"], { DATABASE_URL: through.owner, REDIS_URL: "" });
    expect(checked.stdout).toMatch(/^pooling +session +none or session /m);
  });

  it.each([
    "transaction",
    "statement",
  ])("PgBouncer in %s mode is refused, with a message that names the mode", async (mode) => {
    await migrateDatabase(ownerUrl);
    const through = await start([`pool_mode = ${mode}`]);
    const sentence = /^pooling is transaction\. Needed: none or session\. .* Set pool_mode = session in the pooler/;
    const migration = await migrateDatabase(through.owner).catch((error: unknown) => error);
    expect(migration).toBeInstanceOf(UnmetRequirement);
    expect((migration as Error).message).toMatch(sentence);
    const env = { DATABASE_URL: through.owner, REDIS_URL: "" };
    const refused = { exitCode: 78, stdout: "", stderr: expect.stringMatching(sentence) };
    expect(await voucherctl.run(["org", "list"], env)).toEqual(refused);
    expect((await voucherctl.run(["db", "check"], env)).stdout).toMatch(/^pooling +transaction +none or session /m);
    const api = await startApiUnready({ ...servers, databaseUrl: through.owner, adminUrl: through.owner });
    onTestFinished(() => api.close());
    const readiness = async () => (await fetch(`${api.url}/readyz`)).json();
    await until(async () => sentence.test((await readiness()).error));
    expect(await readiness()).toMatchObject({ postgres: "unavailable" });
  });
});
