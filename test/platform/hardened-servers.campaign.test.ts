import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SCOPES } from "../../src/core/keys/api-keys.ts";
import { hasCoreRules, startApache } from "../support/apache.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { REQUESTS, runCollection } from "../support/bruno.ts";
import { runNode, startProgram } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { openHardenedServers } from "../support/hardened-servers.ts";
import { hasProgram } from "../support/has-program.ts";
import { assertInvariants } from "../support/invariants.ts";
import { startPlainNginx } from "../support/proxy-examples.ts";
import { ACL_RULES } from "../support/redis-tls.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

// Tests the service as in a company's network: behind a firewall with the core rule set and nginx, with PgBouncer, and
// with servers that use TLS with a private authority and give few rights.

let test: TestServers;
let hardened: Awaited<ReturnType<typeof openHardenedServers>>;
let api: TestApi;
let partner: TestPartner;
const env = { WEBHOOK_SECRET: "a root secret of the tests of strict servers", ISSUER_API: "true", OPS_TOKEN };

beforeAll(async () => {
  test = await openTestServers();
  hardened = await openHardenedServers(test);
  api = await startApi(hardened.servers, { ...env, OPS_WRITABLE: "true", TRUST_PROXY: "127.0.0.1" });
  await startWorkers(hardened.servers, { ...env, WORKER_QUEUES: "redeem,seal,sweep" });
});

afterAll(async () => {
  await test.closeOpened();
  await assertInvariants(hardened.db);
  await hardened.close();
  await test.close();
});

const issue = async () => (await issueVoucher(hardened.db, partner)).code;
const makeSecret = async (scopes: (typeof SCOPES)[number][]) =>
  (await makeKey(hardened.db, partner.organizationId, { scopes })).key;

describe.skipIf(!hasCoreRules() || !hasProgram("nginx")).each([1, 2])("the core rule set at level %i", (level) => {
  let nginx: Awaited<ReturnType<typeof startPlainNginx>>;
  let apache: Awaited<ReturnType<typeof startApache>>;

  beforeAll(async () => {
    nginx = await startPlainNginx(api.url);
    apache = await startApache(nginx.url, level);
    partner = await makePartner(hardened.db);
  });
  afterAll(async () => {
    await apache?.stop();
    await nginx?.stop();
  });

  it(`the OWASP core rule set at level ${level} lets each request of the Bruno collection through`, async () => {
    const apiKey = await makeSecret([...SCOPES]);
    // Leaves out receipts, because this service has no log.
    const requests = REQUESTS.filter(({ http }) => !http.url.includes("/receipt"));
    await runCollection({ baseUrl: apache.url, code: await issue(), apiKey }, requests);
    expect(apache.takeMatchedRules()).toEqual([]);
  });

  it.each([
    ["python3", "checkout.py"],
    ["php", "checkout.php"],
    ["python3", "back_office.py"],
    ["node", "back-office.mjs"],
    ["python3", "verify_chain.py"],
    ["php", "verify-chain.php"],
    ["bash", "verify-chain.sh"],
  ])(`the OWASP core rule set at level ${level} lets the calls of %s %s through`, async (program, file) => {
    if (!hasProgram(program, program === "php" ? "php-cli" : program)) return;
    const folder = mkdtempSync(join(tmpdir(), "voucher-programs-"));
    cpSync("docs", folder, { recursive: true });
    const given = { API: apache.url, KEY: await makeSecret([...SCOPES]), CODE: await issue(), RUN: `${level} ${file}` };
    const { exitCode, stderr } = await startProgram(
      program === "node" ? process.execPath : program,
      [file],
      given,
      folder,
    ).ended;
    rmSync(folder, { recursive: true });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(apache.takeMatchedRules()).toEqual([]);
  });

  it(`the OWASP core rule set at level ${level} accepts shops' and persons' texts, and every form`, async () => {
    const till = partnerClient(apache.url, await makeSecret(["voucher.read", "voucher.redeem"]));
    const ops = { headers: { ...basic(OPS_TOKEN), origin: apache.url } };
    const portal = { headers: { ...basic(await makeSecret(["voucher.read"])), origin: apache.url } };
    for (const text of [
      "O'Brien & Söhne",
      "10001/1",
      "../b",
      "'\"<>",
      "a; select * from orders where 1=1 --",
      "$(id)",
    ]) {
      const order = { code: await issue(), externalRef: `${text} ${level}`, note: text };
      const answers = [
        await till.redeem(order),
        await till.redemption(order.externalRef),
        await browse(`${apache.url}/portal/orders?${new URLSearchParams({ externalRef: order.externalRef })}`, portal),
        await browse(`${apache.url}/portal`, { ...portal, form: { words: order.externalRef } }),
        await browse(`${apache.url}/ops/brands/${partner.brandId}/rename`, {
          ...ops,
          form: { name: `${text} ${level}` },
        }),
      ];
      expect([text, ...answers.map(({ status }) => status)]).toEqual([text, 200, 200, 200, 303, 303]);
    }
    for (const path of ["/portal", "/portal/redemptions"])
      expect((await browse(`${apache.url}${path}`, portal)).status).toBe(200);
    for (const path of ["", "/overview.json", "/queues", "/audit", `/organizations/${partner.organizationId}`])
      expect([path, (await browse(`${apache.url}/ops${path}`, ops)).status]).toEqual([path, 200]);
    for (const path of ["/", "/docs", "/docs/guide", "/openapi.json"])
      expect([path, (await browse(`${apache.url}${path}`)).status]).toEqual([path, 200]);
    expect(apache.takeMatchedRules()).toEqual([]);
    // The firewall's rules still apply to all other parameters and addresses.
    for (const path of ["/docs?page=../../etc/passwd", "/partner/vouchers/..%2F..%2Fetc", "/docs?q=a'+or+1=1--"])
      expect([path, (await browse(`${apache.url}${path}`)).status]).toEqual([path, 403]);
    apache.takeMatchedRules();
  });
});

const environment = () => ({
  DATABASE_URL: hardened.servers.databaseUrl,
  REDIS_URL: hardened.servers.redisUrl,
  NODE_EXTRA_CA_CERTS: hardened.tls.caFile,
});

it("processes reach PgBouncer by TLS, and Redis as a user with the documented rights", async () => {
  partner = await makePartner(hardened.db);
  const till = partnerClient(api.url, await makeSecret(["voucher.read", "voucher.redeem"]));
  const code = await issue();
  expect((await till.reserve(code)).status).toBe(200);
  expect((await till.redeem({ code, externalRef: "tls" })).status).toBe(200);
  const { rows } = await hardened.db.query("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()");
  expect(rows).toEqual([{ ssl: true }]);
  // Waits until all connections have sent their password. Until then they belong to Redis's default user.
  const users = await until(async () => {
    const list = String(await hardened.operator.client("LIST"));
    const found = Array.from(list.matchAll(/ user=(\S+)/g), ([, user]) => user);
    return found.includes("default") ? null : found;
  });
  expect(new Set(users)).toEqual(new Set([hardened.tls.user, hardened.tls.admin.username]));
  const shards = await runNode(["src/cli/main.ts", "queue", "shards", "--json"], environment());
  expect(shards).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(shards.stdout).divisions).toMatchObject([
    { shards: hardened.servers.queueShards[0], apis: 1, state: "in_use" },
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

it("docs/servers.md lists the Redis rights that the service needs", () => {
  expect(readFileSync("docs/servers.md", "utf8")).toContain(`ACL SETUSER vouchers on >PASSWORD ${ACL_RULES}\n`);
});
