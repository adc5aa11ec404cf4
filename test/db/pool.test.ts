import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openPool } from "../../src/db/pool.ts";
import { inTransaction, isDatabaseUnavailable } from "../../src/db/transaction.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { until } from "../support/until.ts";

let servers: TestServers;

beforeAll(async () => {
  servers = await openTestServers();
});

afterAll(async () => {
  await servers.close();
});

it("a connection that is lost in a transaction fails that transaction, ends no process and is replaced", async () => {
  const pool = openPool({
    databaseUrl: servers.databaseUrl,
    max: 1,
    applicationName: "lost",
    partnerFacing: true,
    log: pino({ level: "silent" }),
  });
  // An error event that nobody hears would come out here and fail the run.
  const unheard: unknown[] = [];
  const note = (error: unknown) => void unheard.push(error);
  process.on("uncaughtException", note);
  try {
    const lost = await inTransaction(pool, async (tx) => {
      const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await servers.db.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
      await until(async () => {
        const { rowCount } = await servers.db.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [rows[0]?.pid]);
        return rowCount === 0;
      });
      // Time for the news to arrive while no statement is under way.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await tx.query("SELECT 1");
    }).catch((error: unknown) => error);
    expect(isDatabaseUnavailable(lost)).toBe(true);
    expect(unheard).toEqual([]);
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  } finally {
    process.off("uncaughtException", note);
    await pool.end();
  }
});
