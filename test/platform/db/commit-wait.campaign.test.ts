import { afterAll, expect, it } from "vitest";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { UnusableDatabase } from "../../../src/platform/db/schema.ts";
import { inTransaction } from "../../../src/platform/db/transaction.ts";
import { openOwnPostgres } from "../../support/own-postgres.ts";
import { openServicePool } from "../../support/servers.ts";
import { until } from "../../support/until.ts";

const postgres = await openOwnPostgres();
afterAll(() => postgres.close());

it("a COMMIT that no standby confirms frees its connection and leaves no waiting session", async () => {
  const { superuser } = postgres;
  await migrateDatabase(postgres.url("postgres"));
  await superuser.query("ALTER SYSTEM SET synchronous_standby_names = 'missing'");
  await superuser.query("SELECT pg_reload_conf()");
  const pool = openServicePool(postgres.url("postgres"));
  await until(async () => (await pool.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names);
  const sessions = async () => {
    const { rows } = await superuser.query(
      `SELECT pid, wait_event IS NOT DISTINCT FROM 'SyncRep' AS waits FROM pg_stat_activity
        WHERE application_name = 'test' ORDER BY pid`,
    );
    return rows;
  };
  const before = await sessions();
  const commit = () => inTransaction(pool, (tx) => tx.query("SELECT pg_logical_emit_message(true, 'test', '')"));
  await expect(commit()).rejects.toThrow(UnusableDatabase);
  expect(await sessions()).toEqual(before);
  expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  await pool.end();
});
