import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import express from "express";
import { expect, it, onTestFinished } from "vitest";
import { inTransaction, isDatabaseUnavailable } from "../../../src/platform/db/transaction.ts";
import { errorHandler } from "../../../src/platform/http/errors.ts";
import { openServicePool } from "../../support/servers.ts";
import { until } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";

const { servers } = useDatabase();

it("a lost connection fails its transaction, but not the process, and the pool replaces it", async () => {
  const pool = openOne(servers.databaseUrl);
  await withoutUncaught(async () => {
    const lost = await inTransaction(pool, async (tx) => {
      const { rows } = await tx.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
      await servers.db.query("SELECT pg_terminate_backend($1::integer)", [rows[0]?.pid]);
      await until(async () => {
        const { rowCount } = await servers.db.query("SELECT 1 FROM pg_stat_activity WHERE pid = $1", [rows[0]?.pid]);
        return rowCount === 0;
      });
      // Waits until the error arrives while no statement is running.
      await new Promise((resolve) => setTimeout(resolve, 100));
      await tx.query("SELECT 1");
    }).catch((error: unknown) => error);
    expect(isDatabaseUnavailable(lost)).toBe(true);
    expect((await pool.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
  });
});

it("a connection that the server closes at once fails its statement, but not the process", async () => {
  const message = (type: string, body: string) => {
    const header = Buffer.from(`${type}\0\0\0\0`);
    header.writeInt32BE(4 + body.length, 1);
    return Buffer.concat([header, Buffer.from(body)]);
  };
  const ended = message("E", "SFATAL\0C57P01\0Mterminating connection due to administrator command\0\0");
  const opened = Buffer.concat([message("R", "\0\0\0\0"), message("Z", "I"), ended]);
  const server = createServer((socket) => socket.once("data", () => socket.end(opened))).listen(0, "127.0.0.1");
  await once(server, "listening");
  const pool = openOne(`postgres://user:password@127.0.0.1:${(server.address() as AddressInfo).port}/vouchers`);
  await withoutUncaught(async () => {
    expect(isDatabaseUnavailable(await pool.query("SELECT 1").catch((error: unknown) => error))).toBe(true);
  });
  server.close();
});

/** Runs the work, and fails if an error event has no listener, because Node would throw such an error. */
async function withoutUncaught(work: () => Promise<void>): Promise<void> {
  const uncaught: unknown[] = [];
  const recordUncaught = (error: unknown) => void uncaught.push(error);
  process.on("uncaughtException", recordUncaught);
  await work().finally(() => process.off("uncaughtException", recordUncaught));
  expect(uncaught).toEqual([]);
}

it("a read that a standby cancels because of a conflict with recovery gets 503", async () => {
  const conflict =
    "DO $$ BEGIN RAISE 'canceling statement due to conflict with recovery' USING ERRCODE = '40001'; END $$";
  const app = express().use(() => servers.db.query(conflict), errorHandler);
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  server.close();
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ code: "unavailable" });
});

it("the options in DATABASE_URL change only settings that the service does not set itself", async () => {
  const url = new URL(servers.ownerUrl);
  url.searchParams.set("options", "-c plan_cache_mode=auto -c work_mem=7MB");
  const pool = openOne(url.href);
  const { rows } = await pool.query(
    `SELECT current_setting('plan_cache_mode') AS mode, current_setting('work_mem') AS memory,
            current_setting('enable_seqscan') AS scans`,
  );
  expect(rows).toEqual([{ mode: "force_generic_plan", memory: "7MB", scans: "off" }]);
});

function openOne(databaseUrl: string) {
  const pool = openServicePool(databaseUrl);
  onTestFinished(() => pool.end());
  return pool;
}
