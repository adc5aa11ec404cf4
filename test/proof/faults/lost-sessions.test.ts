import { expect, it } from "vitest";
import { inTransaction } from "../../../src/platform/db/transaction.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { openTestServers } from "../../support/servers.ts";

it("the end of a database session fails only its own transaction, and the pool serves the next one", async () => {
  const servers = await openTestServers();
  const pool = openLastingPool({ connectionString: servers.ownerUrl, max: 1 });
  try {
    const ended = inTransaction(pool, (tx) => tx.query("SELECT pg_terminate_backend(pg_backend_pid())"));
    await expect(ended).rejects.toThrow();
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  } finally {
    await pool.end();
    await servers.close();
  }
});
