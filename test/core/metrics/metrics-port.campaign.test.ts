import { createServer } from "node:http";
import { expect, it } from "vitest";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { runNode, startNode } from "../../support/child-process.ts";
import { scrape } from "../../support/scrape.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { untilStarted } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";

const { servers } = useDatabase();

const PROCESSES = [
  ["an API", "src/main.ts", "voucher_http_request_duration_seconds"],
  ["a worker", "workers/main.ts", "voucher_sweep_duration_seconds"],
] as const;

it.each(PROCESSES)("%s serves its metrics on METRICS_PORT and stops cleanly", async (_which, script, own) => {
  const port = await findSteadyPort();
  const started = startNode([script], await env(port));
  await untilStarted(() => /"(listening|working)"/.test(started.output()));
  expect((await scrape(`http://127.0.0.1:${port}/metrics`)).text).toContain(`# TYPE ${own} histogram`);
  started.child.kill("SIGTERM");
  expect((await started.ended).exitCode).toBe(0);
});

it.each(PROCESSES)("%s does not start when METRICS_PORT is in use, and names the port", async (_which, script) => {
  const squatter = createServer();
  const port = await findSteadyPort();
  await new Promise<void>((resolve) => squatter.listen(port, resolve));
  const { exitCode, stderr, stdout } = await runNode([script], await env(port));
  squatter.close();
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(new RegExp(`^cannot listen on METRICS_PORT ${port}: .*EADDRINUSE.*\n$`));
  expect(stdout).not.toMatch(/"listening"|"working"/);
});

it("a worker is not ready before the database is migrated, but serves metrics earlier", async () => {
  const database = `waiting_${process.pid}`;
  await servers.db.query(`CREATE DATABASE ${database}`);
  const url = new URL(servers.ownerUrl);
  url.pathname = database;
  const port = await findSteadyPort();
  const started = startNode(["workers/main.ts"], { ...(await env(port)), DATABASE_URL: url.href });
  const statusOf = (path: string) =>
    fetch(`http://127.0.0.1:${port}${path}`).then(
      ({ status }) => status,
      () => null,
    );
  await untilStarted(() => /the database of DATABASE_URL cannot be used yet/.test(started.output()));
  expect([await statusOf("/readyz"), await statusOf("/metrics")]).toEqual([503, 200]);
  await migrateDatabase(url.href);
  await untilStarted(async () => (await statusOf("/readyz")) === 200);
  started.child.kill("SIGTERM");
  expect((await started.ended).exitCode).toBe(0);
  await servers.db.query(`DROP DATABASE ${database} WITH (FORCE)`);
});

const env = async (metricsPort: number) => ({
  DATABASE_URL: servers.databaseUrl,
  REDIS_URL: servers.redisUrl,
  PORT: String(await findSteadyPort()),
  METRICS_PORT: String(metricsPort),
});
