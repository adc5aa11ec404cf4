import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Deployment } from "../../src/db/deployment.ts";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { openPool } from "../../src/db/pool.ts";
import { type OwnPostgres, openOwnPostgres } from "../support/own-postgres.ts";
import { until } from "../support/until.ts";

let server: OwnPostgres;

beforeAll(async () => {
  server = await openOwnPostgres();
  await migrateDatabase(server.url("postgres"));
});

afterAll(() => server?.close());

it("a running process refuses files of Postgres that were set back, and accepts a server that was only started again", async () => {
  const log = pino({ level: "silent" });
  const deployment = new Deployment(log);
  const pool = openPool({ databaseUrl: server.url("postgres"), max: 1, applicationName: "test", deployment, log });
  const answers = () =>
    pool.query("SELECT 1").then(
      () => "ok",
      (error) => error.state ?? "lost",
    );
  expect(await answers()).toBe("ok");
  void deployment.watch(pool);
  const { origin } = deployment;
  await server.saveFiles();
  await until(async () => (await answers()) === "ok" && deployment.origin !== origin);
  await server.superuser.query("CREATE TABLE later AS SELECT generate_series(1, 100000)");
  // The position is seen within a second, not only when a connection opens.
  const { rows } = await server.superuser.query(
    "SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint AS end",
  );
  await until(() => deployment.walEnd >= rows[0].end);
  await server.setBack();
  await until(async () => (await answers()) === "copied");
  deployment.close();
  await pool.end();
});
