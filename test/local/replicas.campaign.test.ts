import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { basic } from "../support/browse.ts";
import { type Started, startNode, startNpm } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { startPartnerServer } from "../support/partner-server.ts";
import { scrape } from "../support/scrape.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { START_MS, until, untilStarted } from "../support/until.ts";

const pathOf = (file: string) => fileURLToPath(new URL(`../../${file}`, import.meta.url));
const JOIN = ["--import", pathOf("src/local/join.ts")];
const WORKER = [...JOIN, pathOf("workers/main.ts")];
const API = [...JOIN, pathOf("src/main.ts")];

const SCALE_CHECK = pathOf("src/local/scale-check.ts");

describe.each([
  ["npm run worker", WORKER],
  ["npm run api", API],
])("the program %s", (name, program) => {
  it(`${name} without servers and without npm start exits 78 with a reason, and creates no file`, async () => {
    const folder = makeFolder();
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { exitCode, stdout, stderr } = await run(program, {}, folder).ended;
    const why = "no npm start runs in this folder that this could join.";
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 78,
      stdout: "",
      stderr: `DATABASE_URL and REDIS_URL are not set, and ${why}\n`,
    });
    const half = await run(program, { DATABASE_URL: "postgres://127.0.0.1:1/x" }, folder).ended;
    expect(half).toMatchObject({ exitCode: 78, stdout: "", stderr: `REDIS_URL is not set, and ${why}\n` });
    expect(readdirSync(folder)).toEqual([]);
  });

  it(`${name} prints its help for --help, and for unknown arguments with status 2`, async () => {
    const help = await run([...program, "--help"], {}, ".").ended;
    expect(help).toMatchObject({ exitCode: 0, stderr: "", stdout: expect.stringContaining(`Usage: ${name}\n`) });
    const fromNpm = await startNpm(["run", "-s", name.replace("npm run ", ""), "--", "--help"], {}).ended;
    expect(fromNpm).toMatchObject({ exitCode: 0, stdout: help.stdout });
    for (const args of [["--workers", "2"], ["now"], ["--help=yes"]]) {
      const refused = await run([...program, ...args], {}, ".").ended;
      expect(refused, args.join()).toMatchObject({ exitCode: 2, stdout: "" });
      expect(refused.stderr).toContain(`\n\n${help.stdout.trim()}`);
    }
  });
});

/** A secret that the operator sets and no file contains. */
const SECRET = { RESERVATION_TOKEN_SECRET: "a secret of the operator's own" };

/** The callers' pause between two calls, which leaves the processes some CPU time. Milliseconds. */
const REST_MS = 20;

describe("beside npm start", () => {
  let folder: string;
  let port: number;
  let started: Started;
  let db: pg.Pool;
  let password: string;

  const beside = (program: string[], env: Record<string, string> = SECRET) => run(program, env, folder);
  /** Finds the processes that the overview shows in a state, as roles and process ids. */
  const find = async (state: string): Promise<string[]> => {
    const response = await fetch(`http://127.0.0.1:${port}/ops/overview.json`, { headers: basic(password) });
    const { processes } = (await response.json()) as { processes: { role: string; pid: number; state: string }[] };
    return processes.filter((one) => one.state === state).map(({ role, pid }) => `${role} ${pid}`);
  };
  const endOne = async ({ child, ended }: Started) => {
    child.kill("SIGTERM");
    return (await ended).exitCode;
  };

  beforeAll(async () => {
    folder = makeFolder();
    port = await findSteadyPort();
    // The redeem wait is as long as a slow machine needs.
    const env = { ...SECRET, PORT: String(port), RATE_LIMIT_RPS: "0", QUEUE_SHARDS: "2", REDEEM_WAIT_MS: "60000" };
    started = run([pathOf("src/local/start.ts"), "--workers", "1", "--apis", "2"], env, folder);
    await until(
      () => started.output().includes("Ctrl-C stops everything") || started.child.exitCode !== null,
      2 * START_MS,
    );
    if (started.child.exitCode !== null) throw new Error(started.output());
    [, password = ""] = (await untilStarted(() => / {2}password (\S+)/.exec(started.output()))) ?? [];
    const saved = JSON.parse(readFileSync(join(folder, ".data/servers.json"), "utf8"));
    db = openLastingPool({
      connectionString: `postgresql://postgres:${saved.postgresPassword}@127.0.0.1:${saved.postgresPort}/postgres`,
    });
  });

  afterAll(async () => {
    await db.end();
    started.child.kill("SIGINT");
    await started.ended;
    rmSync(folder, { recursive: true, force: true });
  });

  it("npm start -- --workers 1 --apis 2 starts one worker and two APIs, and prints the second's address", async () => {
    const [, further = ""] = /^Further APIs: (\S+)$/m.exec(started.output()) ?? [];
    expect(started.output()).toContain("Starting 2 APIs and one worker.\n");
    expect(Number(new URL(further).port)).toBeGreaterThan(port);
    const ready = await fetch(`${further}/readyz`);
    expect(ready.status).toBe(200);
    const roles = await until(async () => {
      const up = await find("up");
      return up.length === 3 && up.map((one) => one.split(" ")[0]).join();
    });
    expect(roles).toBe("api,api,worker");
  });

  it("a process joins npm start only with the operator's secrets and with the same servers", async () => {
    const refused = await beside(WORKER, {}).ended;
    const sentence = "The running service uses secrets of your own. Set RESERVATION_TOKEN_SECRET here too.\n";
    expect(refused).toMatchObject({ exitCode: 78, stdout: "", stderr: sentence });
    const elsewhere = await beside(API, { ...SECRET, REDIS_URL: "redis://127.0.0.1:1" }).ended;
    expect(elsewhere).toMatchObject({
      exitCode: 78,
      stderr: expect.stringMatching(/^REDIS_URL is set, but the running npm start uses another server\./),
    });
  });

  it("voucherctl adds seal jobs only to shards that the workers of the running npm start serve", async () => {
    const { redisPort, redisPassword } = JSON.parse(readFileSync(join(folder, ".data/servers.json"), "utf8"));
    const redis = new Redis(redisPort, { password: redisPassword });
    onTestFinished(() => redis.disconnect());
    const partner = await makePartner(db);
    const [voucher] = await issueVouchers(db, partner, 1);
    const served = async () => new Set((await redis.keys("*:seal:*")).map((key) => key.split(":seal:")[0]));
    const before = await served();
    const args = ["voucher", "void", voucher?.code ?? "", "--org", partner.organizationId, "--yes", "--json"];
    expect(await beside([pathOf("src/cli/main.ts"), ...args], {}).ended).toMatchObject({ exitCode: 0 });
    expect(await served()).toEqual(before);
    expect(before.size).toBeGreaterThan(0);
  });

  it("voucherctl alert test accepts a receiver on loopback, as the running service does", async () => {
    const receiver = await startPartnerServer({ answer: (response) => response.writeHead(204).end() });
    onTestFinished(() => receiver.close());
    const tested = await beside([pathOf("src/cli/main.ts"), "alert", "test", "--json"], { ALERT_URL: receiver.url })
      .ended;
    expect(tested).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('"accepted":true') });
  });

  it("npm start's workers scale from one to four and back under load, without a refused or lost call", async () => {
    const partner = await makePartner(db);
    const { key } = await makeKey(db, partner.organizationId);
    const load = startLoad(`http://127.0.0.1:${port}`, key, (count) => issueVouchers(db, partner, count));
    try {
      const joined = await Promise.all(
        [1, 2, 3].map(async () => {
          const METRICS_PORT = String(await findSteadyPort());
          const worker = beside(WORKER, { ...SECRET, METRICS_PORT });
          await untilStarted(() => worker.output().includes('"working"') || worker.child.exitCode !== null);
          await untilStarted(async () => (await find("up")).includes(`worker ${worker.child.pid}`));
          const redeemed = async () =>
            (await scrape(`http://127.0.0.1:${METRICS_PORT}/metrics`)).value("voucher_batch_items_sum", {
              batch: "redeem",
            });
          await until(async () => ((await redeemed()) ?? 0) > 0);
          return worker;
        }),
      );
      for (const worker of joined) {
        expect(await endOne(worker), worker.output()).toBe(0);
        expect(worker.output()).toContain('"drained"');
      }
      await until(async () => {
        const up = await find("up");
        return !joined.some(({ child }) => up.includes(`worker ${child.pid}`));
      });
      await load.untilMore(100);
    } finally {
      await load.end();
    }
    expect(load.refusals).toEqual([]);
    const count = "SELECT count(*)::int AS redemptions FROM redemptions WHERE organization_id = $1";
    expect((await db.query(count, [partner.organizationId])).rows).toEqual([{ redemptions: load.answered() }]);
  });

  it("scale-check refuses a live organization, and creates nothing in it", async () => {
    const { organizationId } = await makePartner(db);
    const count = `SELECT (SELECT count(*) FROM api_keys WHERE organization_id = $1)::int AS keys,
      (SELECT count(*) FROM vouchers WHERE organization_id = $1)::int AS vouchers`;
    const refused = await beside([SCALE_CHECK, "--org", organizationId, "--json"]).ended;
    const why = `${organizationId} is a live organization. This redeems vouchers, so it works on a sandbox only.\n`;
    expect(refused).toMatchObject({ exitCode: 1, stdout: "", stderr: why });
    expect((await db.query(count, [organizationId])).rows).toEqual([{ keys: 0, vouchers: 0 }]);
  });

  it("scale-check reports how busy each part is during redeems in a sandbox, and revokes its keys", async () => {
    const load = ["--seconds", "20", "--callers", "2", "--vouchers", "5000"];
    const { exitCode, stdout, stderr } = await beside([SCALE_CHECK, ...load, "--json"]).ended;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    const { organization, redemptionsPerSecond, parts, refusals } = JSON.parse(stdout);
    expect(redemptionsPerSecond).toBeGreaterThan(0);
    expect(refusals).toEqual({});
    expect(parts.map(({ part }: { part: string }) => part)).toEqual(["API", "worker", "Redis", "Postgres"]);
    for (const { busy } of parts) {
      expect(busy).toBeGreaterThan(0);
      expect(busy).toBeLessThanOrEqual(1);
    }
    const { rows } = await db.query(
      `SELECT (SELECT sandbox FROM organizations WHERE id = $1) AS sandbox,
              count(*) FILTER (WHERE k.revoked_at IS NULL)::int AS keys
         FROM api_keys AS k WHERE k.organization_id = $1`,
      [organization],
    );
    expect(rows).toEqual([{ sandbox: true, keys: 0 }]);
  });

  it("processes that join a running npm start use the next free ports, and print them", async () => {
    const exported = { ...SECRET, PORT: String(port), METRICS_PORT: String(port) };
    const joined = [beside(API, exported), beside(WORKER, exported), beside(WORKER, exported)];
    const ports = await Promise.all(
      joined.map(async ({ child, output }) => {
        const serving = /"port":(\d+),"msg":"serving metrics"/;
        await untilStarted(() => serving.test(output()) || child.exitCode !== null);
        return serving.exec(output())?.[1] ?? output();
      }),
    );
    expect(new Set(ports).size, String(ports)).toBe(3);
    for (const [index, { output }] of joined.entries()) {
      const subject = index === 0 ? "api" : "worker";
      const sentence = `METRICS_PORT is ${port}, which another process uses. This ${subject} uses ${ports[index]}.`;
      expect(output()).toContain(sentence);
    }
    await untilStarted(() => joined[0]?.output().includes('"listening"'));
    for (const one of joined) expect(await endOne(one), one.output()).toBe(0);
  });

  it("npm start continues when one API process exits on SIGTERM", async () => {
    const [, further = ""] = /^Further APIs: (\S+)$/m.exec(started.output()) ?? [];
    // The overview may still list an API that joined before, if its last report was lost.
    const [one = ""] = await until(async () => {
      const apis = (await find("up")).filter((name) => name.startsWith("api"));
      return apis.length === 2 ? apis : null;
    });
    process.kill(Number(one.split(" ")[1]), "SIGTERM");
    await untilStarted(() => started.output().includes("One API has ended as it was told to; one is left."));
    const answers = await Promise.allSettled(
      [`http://127.0.0.1:${port}`, further].map((url) => fetch(`${url}/readyz`)),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  it("an API that joins npm start prints its address, uses it in links, and ends with npm start", async () => {
    const api = beside(API);
    const [, address = ""] = await untilStarted(() => /joins npm start at (\S+)\. /.exec(api.output()));
    await untilStarted(async () => (await fetch(`${address}/readyz`).catch(() => null))?.ok);
    expect(api.output()).toContain(`"baseUrl":"http://localhost:${port}"`);
    const partner = await makePartner(db);
    const [voucher] = await issueVouchers(db, partner, 1);
    const till = partnerClient(address, (await makeKey(db, partner.organizationId)).key);
    expect((await till.redeem({ code: voucher?.code, externalRef: "joined" })).status).toBe(200);
    started.child.kill("SIGINT");
    expect((await started.ended).exitCode).toBe(0);
    // `npm start` ended its servers only after the API had ended.
    expect((await api.ended).exitCode, api.output()).toBe(0);
    expect(api.output()).toContain('"drained"');
    expect(readdirSync(join(folder, ".data/users"))).toEqual([]);
  });
});

/** Eight tills that redeem vouchers one by one. Stopping them waits for their last answers. */
function startLoad(url: string, key: string, issue: (count: number) => Promise<{ code: string }[]>) {
  const till = partnerClient(url, key);
  const refusals: unknown[] = [];
  let answered = 0;
  let ending = false;
  const redeemOnAndOn = async () => {
    while (!ending) {
      for (const { code } of await issue(100)) {
        if (ending) return;
        const { status, body } = await till.redeem({ code, externalRef: code });
        answered += 1;
        if (status !== 200) refusals.push(body);
        await new Promise((resolve) => setTimeout(resolve, REST_MS));
      }
    }
  };
  const tills = Promise.all(Array.from({ length: 8 }, redeemOnAndOn));
  return {
    refusals,
    answered: () => answered,
    untilMore(count: number): Promise<unknown> {
      const wanted = answered + count;
      return until(() => answered >= wanted);
    },
    async end(): Promise<void> {
      ending = true;
      await tills;
    },
  };
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "voucher-replicas-"));
  // Under root, Postgres runs as another user, who needs access to the folder.
  chmodSync(folder, 0o755);
  return folder;
}

const run = (args: string[], env: Record<string, string>, folder: string) =>
  startNode(args, { HOME: process.env.HOME ?? "", ...env }, folder);
