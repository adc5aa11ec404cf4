import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { openDeployment } from "./deployment.ts";

// Tries the README's commands, crashes of containers, and operators' tasks.

const URL = "http://127.0.0.1:13080";
/** Maximum duration of a stop. A process that hangs while it drains ends itself after 15 seconds. Milliseconds. */
const NOT_HUNG_MS = 14_000;
/** Maximum duration of stopping the idle containers, in durations of one command in a container. */
const STOP_COMMANDS = 10;
/** How long the API and the workers take to start without other load. Milliseconds. */
let startMs = 0;
let deployment: Awaited<ReturnType<typeof openDeployment>>;
let codes: string[] = [];

before(async () => {
  const psql = ["postgres", "psql", "-U", "vouchers"];
  deployment = await openDeployment({ urls: [URL], voucherctl: "voucherctl", psql });
});

after(() => deployment.close());

function assertAnswered(withinMs: number): void {
  assert.ok(deployment.slowestMs < withinMs, `the slowest call took ${deployment.slowestMs} of ${withinMs} ms`);
}

/** Redeems while operators do something, or servers fail. Expects that each confirmed redemption then exists once. */
async function redeemDuring(work: () => Promise<unknown>): Promise<void> {
  deployment.slowestMs = 0;
  codes = await deployment.redeemDuring(codes, work);
  await deployment.assertProved();
}

describe("docker compose", () => {
  it("docker compose starts the service and the log, and every container becomes healthy", async () => {
    const { compose } = deployment;
    await compose("up", "-d", "--build", "--wait", "--quiet-pull");
    await compose("up", "-d", "--wait", "log");
    assert.equal((await compose("ps", "-q", "worker")).trim().split("\n").length, 2);
  });

  it("docker compose serves the README's example calls, with a receipt", async () => {
    codes = await deployment.supply(5_000);
    const code = codes.shift() as string;
    const { body } = await deployment.call(`/partner/vouchers/${code}`);
    assert.equal((body.voucher as { status: string }).status, "Active");
    assert.equal((await deployment.call("/partner/vouchers/reserve", { code })).status, 200);
    await deployment.redeemAll([code]);
    let receipt = "";
    for (let attempt = 0; attempt < 60 && !receipt.startsWith("c2sp.org/tlog-proof@v1"); attempt++) {
      await sleep(500);
      const path = `/partner/redemptions/order-${code}/receipt`;
      receipt = await (await fetch(`${URL}${path}`, { headers: deployment.headers })).text();
    }
    assert.match(receipt, /^c2sp\.org\/tlog-proof@v1\n/);
  });

  it("the compose service `demo` prints a key and a code of a sandbox", async () => {
    const printed = await deployment.compose("run", "--rm", "-T", "demo");
    const [, address, code, key = ""] = /API=(\S+) CODE=(\S+)\n +export KEY=(pvt_\S+)/.exec(printed) ?? [];
    assert.equal(address, URL, printed);
    const looked = await fetch(`${URL}/partner/vouchers/${code}`, { headers: { "x-api-key": key } });
    assert.equal(((await looked.json()) as { sandbox: boolean }).sandbox, true);
  });

  it("killing a worker, Redis and Postgres during redeems loses no redemption and doubles none", async () => {
    await redeemDuring(async () => {
      for (const service of ["worker", "redis", "postgres"]) {
        await deployment.run("docker", "kill", "-s", "KILL", await deployment.idOf(service));
        await deployment.compose("up", "-d", "--no-recreate", "--wait", service);
      }
    });
  });

  it("`docker compose down` and `up` keep all data", async () => {
    const { compose } = deployment;
    await compose("--profile", "log", "down", "--timeout", "20");
    await compose("up", "-d", "--wait", "api", "worker", "log");
    await redeemDuring(async () => undefined);
    const audit = ["node", "src/cli/main.ts", "log", "audit", "--json"];
    const report = await compose("run", "--rm", "-T", "--no-deps", "log-init", ...audit);
    assert.equal(JSON.parse(report).problemCount, 0);
  });

  it("the compose containers run without root, capabilities and writable files, and with limits", async () => {
    for (const service of ["api", "worker"]) {
      const inside = async (command: string) =>
        (await deployment.compose("exec", "-T", service, "sh", "-c", command)).trim();
      assert.notEqual(await inside("id -u"), "0");
      assert.equal(await inside("sed -n 's/^CapEff:\\t//p' /proc/1/status"), "0000000000000000");
      assert.equal(await inside("sed -n 's/^NoNewPrivs:\\t//p' /proc/1/status"), "1");
      assert.equal(await inside("touch /app/x 2>/dev/null; echo $?"), "1");
      const limits = "cd /sys/fs/cgroup; cat memory.max pids.max || cat memory/memory.limit_in_bytes pids/pids.max";
      assert.deepEqual((await inside(`(${limits}) 2> /dev/null`)).split("\n"), [String(512 * 1024 * 1024), "200"]);
    }
  });

  it("containers of the tests publish their ports only on loopback", async () => {
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--project", "guarantees", "test/acts/lists.test.ts"];
    let isOver = false;
    const tests = promisify(execFile)(process.execPath, vitest, {
      cwd: join(import.meta.dirname, "../../.."),
      // The suite stops its containers itself, because the image that would stop them after a crash is not available
      // everywhere.
      env: { ...process.env, NO_COLOR: "1", TESTCONTAINERS_RYUK_DISABLED: "true" },
      maxBuffer: 1e8,
    }).finally(() => (isOver = true));
    const published = new Set<string>();
    for (; !isOver; await sleep(200)) {
      const list = ["ps", "--filter", "label=org.testcontainers=true", "--format", "{{.Ports}}"];
      for (const ports of (await deployment.run("docker", ...list)).split("\n")) if (ports) published.add(ports);
    }
    assert.match((await tests).stdout, /Tests +\d+ passed/);
    assert.doesNotMatch((await tests).stdout, /embedded server/);
    assert.ok(published.size >= 2);
    for (const ports of published) assert.match(ports, /^127\.0\.0\.1:\d+->\d+\/tcp$/);
  });

  it("the image states its version and licence, lists its packages and is smaller than 250 MB compressed", async () => {
    const { compose, run } = deployment;
    const labels = JSON.parse(
      await run("docker", "inspect", "-f", "{{json .Config.Labels}}", await deployment.idOf("api")),
    );
    assert.equal(labels["org.opencontainers.image.licenses"], "MIT");
    assert.match(labels["org.opencontainers.image.version"], /^\d+\.\d+\.\d+$/);
    const { components } = JSON.parse(await compose("exec", "-T", "api", "cat", "sbom.cdx.json"));
    const names = components.map(({ name }: { name: string }) => name);
    for (const name of ["bullmq", "express", "pg"]) assert.ok(names.includes(name), name);
    assert.ok(!names.includes("vitest"));
    const bytes = await run("sh", "-c", "docker save partner-voucher-api | gzip -1 | wc -c");
    assert.ok(Number(bytes) < 250e6, `${bytes} bytes`);
  });

  it("workers and APIs stop within seconds, and exit with 0", async () => {
    const { compose, run } = deployment;
    const ids = await Promise.all(["api", "worker"].map(deployment.idOf));
    const timeOf = async (...args: string[]) => {
      const startedAt = performance.now();
      await compose(...args);
      return performance.now() - startedAt;
    };
    const commands = [];
    for (const _ of [1, 2, 3]) commands.push(await timeOf("exec", "-T", "api", "node", "-e", "0"));
    const commandMs = Math.max(...commands);
    const limitMs = Math.min(Math.max(5_000, STOP_COMMANDS * commandMs), NOT_HUNG_MS);
    const tookMs = await timeOf("stop", "api", "worker");
    assert.ok(tookMs < limitMs, `the stop took ${tookMs} of ${limitMs} ms`);
    for (const id of ids) assert.equal((await run("docker", "inspect", "-f", "{{.State.ExitCode}}", id)).trim(), "0");
    startMs = await timeOf("up", "-d", "--wait", "api", "worker");
  });

  it("docker compose with the profile tls serves https with its own certificate", async () => {
    await deployment.compose("--profile", "tls", "up", "-d", "--wait", "proxy");
    const status = ["-sk", "-o", "/dev/null", "-w", "%{http_code}", "https://localhost:13443/healthz"];
    assert.equal(await deployment.run("curl", ...status), "200");
  });

  it("Prometheus scrapes every process and loads the rules", async () => {
    await deployment.compose("--profile", "observability", "up", "-d", "--wait", "prometheus");
    const query = async (path: string) =>
      (await fetch(`http://127.0.0.1:13090/api/v1/${path}`)).json() as Promise<Answer>;
    type Answer = { data: { groups: { rules: { health: string }[] }[]; activeTargets: { health: string }[] } };
    for (let attempt = 0; ; attempt++) {
      const { activeTargets } = (await query("targets?state=active")).data;
      // Prometheus must reach an API, two workers and the log's worker.
      if (activeTargets.filter(({ health }) => health === "up").length >= 4) break;
      assert.ok(attempt < 60, JSON.stringify(activeTargets));
      await sleep(1_000);
    }
    const rules = (await query("rules")).data.groups.flatMap(({ rules }) => rules);
    assert.ok(rules.length > 20);
    assert.deepEqual(
      rules.filter(({ health }) => health === "err"),
      [],
    );
  });

  it("the audit entry of a voucherctl command names the command's user and host", async () => {
    const { acts }: { acts: { command: string; osUser: string; host: string }[] } = await deployment.voucherctl(
      "audit",
      "list",
    );
    const issued = acts.find(({ command }) => command === "batch issue");
    assert.deepEqual([issued?.osUser, issued?.host], ["alice", "desk-1"]);
  });

  it("during an upgrade in steps, no call waits longer than one process's stop and start", async () => {
    const { compose } = deployment;
    await redeemDuring(async () => {
      await compose("build", "migrate");
      await compose("run", "--rm", "-T", "migrate");
      await compose("up", "-d", "--no-deps", "--force-recreate", "--wait", "worker");
      await compose("up", "-d", "--no-deps", "--force-recreate", "--wait", "api");
    });
    assertAnswered(NOT_HUNG_MS + startMs);
  });

  it("the old release continues to serve when a migration fails", async () => {
    const { compose, checkout } = deployment;
    const next = `${String(readdirSync(`${checkout}/migrations`).length + 1).padStart(5, "0")}_fails.sql`;
    const mount = `${checkout}/test/proof/containers/failing-migration.sql:/app/migrations/${next}:ro`;
    await redeemDuring(() => assert.rejects(compose("run", "--rm", "-T", "-v", mount, "migrate"), /fails on purpose/));
    assertAnswered(NOT_HUNG_MS);
  });

  it("the documented commands retire the transparency log, and can be repeated", async () => {
    const runbook = readFileSync(`${deployment.checkout}/docs/transparency-log.md`, "utf8");
    const [, lines = ""] = / {2}```sh\n( {2}docker compose stop log[\s\S]*?)\n {2}```/.exec(runbook) ?? [];
    assert.match(lines, /log retire/);
    for (const _ of [1, 2])
      await deployment.run("sh", "-ec", lines.replaceAll("vouchers.example.com", "vouchers.test"));
    let checkpoint = "";
    for (let attempt = 0; attempt < 60 && !checkpoint.startsWith("vouchers.test/log2\n"); attempt++) {
      await sleep(500);
      checkpoint = await (await fetch(`${URL}/log/checkpoint`)).text();
    }
    assert.match(checkpoint, /^vouchers.test\/log2\n/);
  });

  it("pg_restore and `db adopt` restore a dump that was made inside the containers", async () => {
    const { compose, run } = deployment;
    const inPostgres = "docker compose exec -T postgres";
    await run("sh", "-c", `${inPostgres} pg_dump -U vouchers -Fc vouchers > vouchers.dump`);
    await compose("--profile", "log", "--profile", "tls", "stop", "proxy", "api", "worker", "log");
    for (const sql of ["DROP DATABASE vouchers WITH (FORCE)", "CREATE DATABASE vouchers"])
      await compose("exec", "-T", "postgres", "psql", "-U", "vouchers", "-q", "-c", sql, "postgres");
    const options = "--no-owner --no-privileges --exit-on-error";
    await run("sh", "-c", `${inPostgres} pg_restore -U vouchers ${options} -d vouchers < vouchers.dump`);
    await compose("run", "--rm", "-T", "migrate");
    await deployment.voucherctl("db", "adopt");
    await compose("up", "-d", "--wait", "api", "worker");
    await redeemDuring(async () => undefined);
  });
});
