import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runNode } from "../../support/child-process.ts";
import { partnerClient } from "../../support/client.ts";
import { ACL_RULES, makeRedisTls, type RedisTls } from "../../support/redis-tls.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";

let servers: TestServers;
let directory: string;
let tls: RedisTls;
let server: ChildProcess;
let operator: Redis;
let port: number;
const authorities = getCACertificates("default");

beforeAll(async () => {
  servers = await openTestServers();
  directory = mkdtempSync(join(tmpdir(), "voucher-tls-"));
  tls = makeRedisTls(directory);
  port = await findSteadyPort();
  const place = ["--bind", "127.0.0.1", "--tls-port", String(port), "--dir", directory, "--save", ""];
  server = spawn("redis-server", [...tls.settings, ...place], { stdio: "ignore" });
  operator = new Redis({ port, ...tls.admin, tls: { ca: readFileSync(tls.caFile) }, retryStrategy: () => 50 });
  operator.on("error", () => undefined);
  await untilStarted(() => operator.status === "ready");
});

afterAll(async () => {
  await servers.closeOpened();
  setDefaultCACertificates(authorities);
  operator.disconnect();
  server.kill("SIGKILL");
  await once(server, "exit");
  rmSync(directory, { recursive: true, force: true });
  await servers.close();
});

it("every process uses Redis over TLS, as a user with the documented rights", async () => {
  // The processes read NODE_EXTRA_CA_CERTS when they start, like the command below.
  setDefaultCACertificates([...authorities, readFileSync(tls.caFile, "utf8")]);
  const { REDIS_URL } = environment();
  const { url } = await startApi(servers, { REDIS_URL });
  await startWorkers(servers, { REDIS_URL, WORKER_QUEUES: "redeem,seal,sweep" });
  const partner = await makePartner(servers.db);
  const till = partnerClient(url, (await makeKey(servers.db, partner.organizationId)).key);
  const [voucher] = await issueVouchers(servers.db, partner, 1);
  const code = voucher?.code ?? "";
  expect((await till.reserve(code)).status).toBe(200);
  expect((await till.redeem({ code, externalRef: "tls" })).status).toBe(200);
  // A connection belongs to the default user until it has sent its password.
  const users = await until(async () => {
    const found = Array.from(String(await operator.client("LIST")).matchAll(/ user=(\S+)/g), ([, user]) => user);
    return found.includes("default") ? null : found;
  });
  expect(new Set(users)).toEqual(new Set([tls.user, tls.admin.username]));
  const shards = await runNode(["src/cli/main.ts", "queue", "shards", "--json"], environment());
  expect(shards).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(shards.stdout).divisions).toMatchObject([
    { shards: servers.queueShards[0], apis: 1, state: "in_use" },
  ]);
});

it("the service refuses a Redis server whose certificate it cannot verify", async () => {
  const untrusting = await runNode(["src/cli/main.ts", "queue", "shards"], {
    ...environment(),
    NODE_EXTRA_CA_CERTS: "",
  });
  expect(untrusting.exitCode).not.toBe(0);
  expect(untrusting.stderr).toMatch(/^Redis at .* cannot be used: .* Name the file .* in NODE_EXTRA_CA_CERTS\.\n$/);
});

it("the documents list the Redis user's rights", () => {
  expect(readFileSync("docs/servers.md", "utf8")).toContain(`ACL SETUSER vouchers on >PASSWORD ${ACL_RULES}\n`);
});

const environment = () => ({
  DATABASE_URL: servers.databaseUrl,
  REDIS_URL: `rediss://${tls.login}127.0.0.1:${port}`,
  NODE_EXTRA_CA_CERTS: tls.caFile,
});
