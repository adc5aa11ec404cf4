import assert from "node:assert/strict";
import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

// Runs docker-compose.yml in a copy of this checkout, on ports of its own: the README's commands, crashes, and what operators do.

const ROOT = join(import.meta.dirname, "../..");
const API = "http://127.0.0.1:13080";
/** Longest time in which a call is repeated. Milliseconds. */
const RETRY_MAX_MS = 60_000;
const VOUCHERS = 60;

const checkout = mkdtempSync(join(tmpdir(), "voucher-containers-"));
const env: NodeJS.ProcessEnv = {
  ...process.env,
  COMPOSE_PROJECT_NAME: "voucher-test",
  API_LISTEN: "127.0.0.1:13080",
  POSTGRES_LISTEN: "127.0.0.1:13432",
  REDIS_LISTEN: "127.0.0.1:13379",
  HTTP_LISTEN: "127.0.0.1:13081",
  HTTPS_LISTEN: "127.0.0.1:13443",
  PROMETHEUS_LISTEN: "127.0.0.1:13090",
  BASE_URL: API,
  LOG_ORIGIN: "vouchers.test/log",
  VOUCHERCTL_USER: "alice",
  VOUCHERCTL_HOST: "desk-1",
};
const inCheckout: ExecFileSyncOptions = { cwd: checkout, env, encoding: "utf8", maxBuffer: 1e8 };

const run = (command: string, ...args: string[]) => runWith("", command, ...args);

function runWith(input: string, command: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { ...inCheckout, input, encoding: "utf8" });
  assert.equal(status, 0, `${command} ${args.join(" ")}\n${stdout}\n${stderr}`);
  return stdout;
}
const compose = (...args: string[]) => run("docker", "compose", ...args);
/** Runs a command of voucherctl and returns its JSON. */
const voucherctl = (...args: string[]) => JSON.parse(compose("run", "--rm", "-T", "voucherctl", ...args, "--json"));
const idOf = (service: string) => compose("ps", "-q", service).trim().split("\n")[0] ?? "";

let key = "";
let organization = "";
let codes: string[] = [];
/** The answer to each confirmed redeem, by its reference. */
const confirmed = new Map<string, string>();

/** Calls the API by the partner's rule: repeats the same call after a lost connection or a 5xx. */
async function call(path: string, body?: object): Promise<{ status: number; body: Record<string, unknown> }> {
  const giveUpAt = Date.now() + RETRY_MAX_MS;
  for (;;) {
    try {
      const response = await fetch(`${API}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        signal: AbortSignal.timeout(10_000),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (response.status < 500)
        return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    } catch {
      // Repeated below.
    }
    assert.ok(Date.now() < giveUpAt, `${path} got no answer in ${RETRY_MAX_MS} ms`);
    await sleep(250);
  }
}

async function redeemAll(some: readonly string[]): Promise<void> {
  for (const code of some) {
    const externalRef = `order-${code}`;
    const { status, body } = await call("/partner/vouchers/redeem", { code, externalRef });
    assert.equal(status, 200, JSON.stringify(body));
    confirmed.set(externalRef, String(body.redeemCode));
  }
}

/** Every confirmed redemption is in the database, and there is no other. */
function assertProved(): void {
  const sql = `SELECT external_ref || ' ' || redeem_code FROM redemptions WHERE organization_id = '${organization}' ORDER BY 1`;
  const stored = compose("exec", "-T", "postgres", "psql", "-U", "vouchers", "-At", "-c", sql).trim().split("\n");
  assert.deepEqual(stored, [...confirmed].map(([ref, redeemCode]) => `${ref} ${redeemCode}`).sort());
  // Exits with 1 when a chain is broken.
  voucherctl("chain", "verify", "--all");
}

before(() => {
  execFileSync(
    "bash",
    ["-c", `git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t '${checkout}'`],
    {
      cwd: ROOT,
    },
  );
  run("./setup");
});

after(() => {
  spawnSync("docker", ["compose", "--profile", "*", "down", "--volumes", "--timeout", "5"], inCheckout);
  rmSync(checkout, { recursive: true });
});

describe("docker compose", () => {
  it("starts the service and the log from nothing, and every container becomes healthy", () => {
    compose("up", "-d", "--build", "--wait", "--quiet-pull");
    compose("up", "-d", "--wait", "log");
    assert.equal(compose("ps", "-q", "worker").trim().split("\n").length, 2);
  });

  it("answers the README's calls, with a receipt", async () => {
    organization = voucherctl("org", "create", "--name", "Corner Shop").id;
    const brand = voucherctl("brand", "create", "--org", organization, "--name", "Corner").id;
    const product = voucherctl(
      ...["product", "create", "--brand", brand, "--key", "cup", "--name", "A cup", "--type", "Product"],
      ...["--retail-price-usd", "5", "--price-usd", "4"],
    ).id;
    key = voucherctl(
      "key",
      "create",
      "--org",
      organization,
      "--scope",
      "voucher.read",
      "--scope",
      "voucher.redeem",
    ).key;
    codes = Array.from(
      { length: VOUCHERS },
      (_, n) => `CUP-${String(n).padStart(4, "0")}-${organization.slice(-8).toUpperCase()}`,
    );
    const batch = ["batch", "issue", "--product", product, "--count", String(VOUCHERS), "--valid-until", "2099-01-01"];
    runWith(
      codes.join("\n"),
      "docker",
      "compose",
      "run",
      "--rm",
      "-T",
      "voucherctl",
      ...batch,
      "--codes",
      "/dev/stdin",
    );
    const [code = ""] = codes;
    const lookedUp = await call(`/partner/vouchers/${code}`);
    assert.equal((lookedUp.body.voucher as { status: string }).status, "Active");
    assert.equal((await call("/partner/vouchers/reserve", { code })).status, 200);
    await redeemAll([code]);
    let receipt = "";
    for (let attempt = 0; attempt < 60 && !receipt.startsWith("c2sp.org/tlog-proof@v1"); attempt++) {
      await sleep(500);
      const response = await fetch(`${API}/partner/redemptions/order-${code}/receipt`, {
        headers: { "x-api-key": key },
      });
      receipt = await response.text();
    }
    assert.match(receipt, /^c2sp\.org\/tlog-proof@v1\n/);
  });

  it("loses and doubles no redemption when a worker, Redis and Postgres are killed while vouchers are redeemed", async () => {
    const kills = ["worker", "redis", "postgres"];
    const redeeming = redeemAll(codes.slice(1, 41));
    for (const service of kills) {
      await sleep(1_500);
      run("docker", "kill", "-s", "KILL", idOf(service));
      compose("up", "-d", "--no-recreate", "--wait", service);
    }
    await redeeming;
    assertProved();
  });

  it("keeps everything over `down` and `up`", async () => {
    compose("--profile", "log", "down", "--timeout", "20");
    compose("up", "-d", "--wait", "api", "worker", "log");
    await redeemAll(codes.slice(0, 45));
    assertProved();
    const audit = compose(
      "run",
      "--rm",
      "-T",
      "--no-deps",
      "log-init",
      "node",
      "src/cli/main.ts",
      "log",
      "audit",
      "--json",
    );
    assert.equal(JSON.parse(audit).problemCount, 0);
  });

  it("gives the processes no root, no capability and no writable files", () => {
    for (const service of ["api", "worker"]) {
      const inside = (command: string) => compose("exec", "-T", service, "sh", "-c", command).trim();
      assert.notEqual(inside("id -u"), "0");
      assert.equal(inside("sed -n 's/^CapEff:\\t//p' /proc/1/status"), "0000000000000000");
      assert.equal(inside("sed -n 's/^NoNewPrivs:\\t//p' /proc/1/status"), "1");
      assert.equal(inside("touch /app/x 2>/dev/null; echo $?"), "1");
    }
  });

  it("stops gracefully within 5 seconds, and its workers and APIs exit with 0", () => {
    const ids = ["api", "worker"].map(idOf);
    const startedAt = performance.now();
    compose("stop", "api", "worker");
    assert.ok(performance.now() - startedAt < 5_000);
    for (const id of ids) assert.equal(run("docker", "inspect", "-f", "{{.State.ExitCode}}", id).trim(), "0");
    compose("up", "-d", "--wait", "api", "worker");
  });

  it("serves https with a certificate of its own in the profile tls", () => {
    compose("--profile", "tls", "up", "-d", "--wait", "proxy");
    const answer = run("curl", "-sk", "-o", "/dev/null", "-w", "%{http_code}", "https://localhost:13443/healthz");
    assert.equal(answer, "200");
  });

  it("names the user and the host of a command in its audit entry", () => {
    const entries: { command: string; osUser: string; host: string }[] = voucherctl("audit", "list").acts;
    const issued = entries.find(({ command }) => command === "batch issue");
    assert.deepEqual([issued?.osUser, issued?.host], ["alice", "desk-1"]);
  });

  it("upgrades without a failed call: build, migrate, workers, APIs", async () => {
    const redeeming = redeemAll(codes.slice(45, 55));
    compose("build", "migrate");
    compose("run", "--rm", "-T", "migrate");
    compose("up", "-d", "--no-deps", "--wait", "worker");
    compose("up", "-d", "--no-deps", "--wait", "api");
    await redeeming;
    assertProved();
  });

  it("restores a dump that was made inside the containers, as the runbook prints", async () => {
    const dump = join(checkout, "vouchers.dump");
    writeFileSync(
      dump,
      execFileSync("docker", ["compose", "exec", "-T", "postgres", "pg_dump", "-U", "vouchers", "-Fc", "vouchers"], {
        ...inCheckout,
        encoding: "buffer",
      }),
    );
    compose("--profile", "log", "--profile", "tls", "stop", "proxy", "api", "worker", "log");
    for (const sql of ["DROP DATABASE vouchers WITH (FORCE)", "CREATE DATABASE vouchers"])
      compose("exec", "-T", "postgres", "psql", "-U", "vouchers", "-q", "-c", sql, "postgres");
    const restore = [
      "exec",
      "-T",
      "postgres",
      "pg_restore",
      "-U",
      "vouchers",
      "--no-owner",
      "--no-privileges",
      "--exit-on-error",
      "-d",
      "vouchers",
    ];
    execFileSync("bash", ["-c", `docker compose ${restore.join(" ")} < '${dump}'`], inCheckout);
    compose("run", "--rm", "-T", "migrate");
    voucherctl("db", "adopt");
    compose("up", "-d", "--wait", "api", "worker");
    await redeemAll(codes.slice(0, 58));
    assertProved();
  });
});
