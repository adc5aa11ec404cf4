import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { runNode, type Started, startNode } from "../support/child-process.ts";
import { partnerClient, send } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { until } from "../support/until.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

// Tries each command and each page once, on a running `npm start`.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OPS_TOKEN = "a-token-for-the-smoke-test";

let servers: TestServers;
const running: Started[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "voucher-smoke-"));
  servers = await openTestServers();
});

afterAll(async () => {
  for (const { child } of running) child.kill("SIGKILL");
  await Promise.all(running.map(({ ended }) => ended));
  await assertInvariants(servers.db);
  await servers.close();
  rmSync(folder, { recursive: true });
});

/** `npm start` records itself in its folder, so each start of the test needs an empty one. */
let folder: string;

describe("npm start with given servers", () => {
  let url: string;
  let service: Started;

  beforeAll(async () => {
    const port = await findSteadyPort();
    url = `http://127.0.0.1:${port}`;
    service = start("src/local/start.ts", {
      DATABASE_URL: servers.ownerUrl,
      PORT: String(port),
      OPS_TOKEN,
      LOG_LEVEL: "silent",
      // These variables send a program's requests to an absent proxy, unless the program excludes local addresses.
      NODE_USE_ENV_PROXY: "1",
      HTTP_PROXY: "http://127.0.0.1:9",
    });
    await until(() => service.output().includes("CODE=") || service.child.exitCode !== null);
  });

  it("npm start with given servers creates a demo whose key redeems its voucher once", async () => {
    const key = /pvk_[0-9A-Z]+/.exec(service.output())?.[0] ?? service.output();
    const code = /CODE=(\S+)/.exec(service.output())?.[1] ?? "";
    const till = partnerClient(url, key);
    expect((await till.lookUp(code)).body).toMatchObject({ voucher: { status: "Active" }, reservation: null });
    const order = { code, externalRef: "smoke" };
    expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: false } });
    expect(await till.redeem(order)).toMatchObject({ status: 200, body: { alreadyConfirmed: true } });
  });

  it("npm start listens only on loopback, and says how to open the API to other machines", async () => {
    expect(service.output()).toContain(
      "\nOnly this machine reaches it. To open it to others: HOST=0.0.0.0 npm start\n",
    );
    const metrics = service.output().match(/http:\/\/localhost:\d+\/metrics/g) ?? [];
    expect(metrics.length).toBeGreaterThan(1);
    for (const open of [`${url}/readyz`, ...metrics]) {
      expect((await fetch(open.replace("localhost", "127.0.0.1"))).status).toBe(200);
      // Another address of this machine, at which a server on all interfaces responds.
      await expect(fetch(open.replace(/localhost|127\.0\.0\.1/, "127.0.0.2"))).rejects.toThrow();
    }
  });

  it("npm start with given servers lists disabled features, each with the variable that enables it", () => {
    const off = "marketplace (AUTH_JWKS_URL), receipts (LOG_KEY_FILE), webhooks (WEBHOOK_SECRET)";
    expect(service.output()).toContain(`\nOff, each until its variable is set: ${off}.\n`);
  });

  it("npm run demo names the variables to set if the running service's database is unknown to it", async () => {
    const ended = await start("src/local/print-demo.ts", { DATABASE_URL: "", REDIS_URL: "" }).ended;
    expect(ended).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/^The running .*DATABASE_URL/),
    });
  });

  it("npm start with given servers serves the start page, the documents, a history and the queue pages", async () => {
    const { rows } = await servers.db.query("SELECT id FROM vouchers WHERE status = 'Redeemed'");
    const authorization = `Basic ${Buffer.from(`:${OPS_TOKEN}`).toString("base64")}`;
    for (const [path, words] of [
      ["/", /voucher/i],
      ["/docs", /swagger/i],
      [`/integrity/events/VoucherInstance/${rows[0]?.id}`, /redeemed/i],
      ["/ops/queues", /queue|dashboard/i],
    ] as const) {
      const page = await fetch(`${url}${path}`, { headers: { accept: "text/html", authorization } });
      expect({ path, status: page.status }).toEqual({ path, status: 200 });
      expect(await page.text(), path).toMatch(words);
    }
    expect((await fetch(`${url}/ops/queues`)).status).toBe(401);
    expect(await send("GET", `${url}/readyz`)).toMatchObject({ status: 200 });
  });

  it("npm start with given servers stops all its processes on Ctrl-C", async () => {
    service.child.kill("SIGINT");
    expect((await service.ended).exitCode).toBe(0);
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  });
});

it("npm start names the variable of a server that does not respond", async () => {
  const PORT = String(await findSteadyPort());
  const closed = `127.0.0.1:${await findSteadyPort()}`;
  for (const [name, env] of [
    ["DATABASE_URL", { DATABASE_URL: `postgres://${closed}/x` }],
    ["REDIS_URL", { REDIS_URL: `redis://${closed}` }],
  ] as const) {
    const { exitCode, stdout, stderr } = await start("src/local/start.ts", { PORT, ...env }).ended;
    const sentence = new RegExp(`^${name}: \\w+ does not accept a connection: connect ECONNREFUSED ${closed}\\.\\n$`);
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 1, stdout: "", stderr: expect.stringMatching(sentence) });
  }
});

/**
 * Nouns of commands that this test cannot run: `user token` needs the embedded servers, `db` a role that creates roles,
 * `sandbox check` a client, `log`, `receipt` and `witness` a log with a key, `statement` a month that has ended,
 * `completion` a shell, `alert` a receiver.
 */
const TRIED_ELSEWHERE = ["user", "db", "sandbox", "log", "receipt", "witness", "statement", "completion", "alert"];

it("voucherctl can run a command of each noun", async () => {
  const voucherctl = openVoucherctl(servers);
  const tried = new Set<string>();
  const run = (line: string) => {
    tried.add(line.split(" ")[0] ?? "");
    return voucherctl.json(line);
  };
  const org = (await run("org create --name Corner")).id;
  const brand = (await run(`brand create --org ${org} --name Corner`)).id;
  const named = "--key day --name Day --type Service --retail-price-usd 20 --price-usd 15";
  const product = (await run(`product create --brand ${brand} ${named}`)).id;
  const issue = "batch issue --count 2 --valid-until 2099-12-31 --claim --buy";
  const batch = (await run(`${issue} --product ${product}`)).id;
  expect((await run(`key create --org ${org} --scope voucher.read`)).key).toMatch(/^pvk_/);
  expect((await run(`webhook create --org ${org} --url https://shop.example.com/hooks`)).secret).toMatch(/^whsec_/);
  await run(`listing create --batch ${batch}`);
  await run(`member add --org ${org} --user alice --role owner`);
  const contract = (await run(`contract offer --brand ${brand} --user bob`)).id;
  await run(`contract accept ${contract}`);
  expect((await run(`link create --contract ${contract} --product ${product}`)).code).toMatch(/\S/);
  const { rows } = await servers.db.query("SELECT code FROM vouchers WHERE batch_id = $1 ORDER BY serial", [batch]);
  expect(await run(`voucher void ${rows[0]?.code} --org ${org}`)).toBeTypeOf("object");
  expect(await run(`redemption list --org ${org}`)).toMatchObject({ redemptions: [] });
  expect(await run("chain verify --all")).toMatchObject({ broken: [] });
  expect(await run("audit list --limit 5")).toBeTypeOf("object");
  expect(await run("queue shards")).toBeTypeOf("object");
  expect((await run("operator create --name Ada --role viewer")).token).toMatch(/^pvo_/);
  expect(await run("person erase --user bob --yes")).toMatchObject({ vouchers: 0, events: 0 });
  expect(await run("erasure list")).toMatchObject({ items: [], users: [expect.stringMatching(/^erased:/)] });
  const process = await runNode(["src/cli/main.ts", "org", "list", "--json"], { DATABASE_URL: servers.adminUrl });
  expect(JSON.parse(process.stdout).items).toHaveLength(2);
  const nouns = buildVoucherctl().commands.map((command) => command.name());
  expect([...tried, ...TRIED_ELSEWHERE].sort()).toEqual(nouns.filter((noun) => noun !== "help").sort());
});

function start(script: string, env: Record<string, string>): Started {
  const given = { DATABASE_URL: servers.databaseUrl, REDIS_URL: servers.redisUrl, ...env };
  const started = startNode([join(ROOT, script)], given, folder);
  running.push(started);
  return started;
}
