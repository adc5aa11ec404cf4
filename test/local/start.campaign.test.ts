import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Started, startNode, startProgram } from "../support/child-process.ts";
import { interrupt, startIn, untilReady } from "../support/npm-start.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { until, untilStarted } from "../support/until.ts";

const START = fileURLToPath(new URL("../../src/local/start.ts", import.meta.url));
const DEMO = fileURLToPath(new URL("../../src/local/print-demo.ts", import.meta.url));
const WORKER = [
  "--import",
  ...["src/local/join.ts", "workers/main.ts"].map((file) => fileURLToPath(new URL(`../../${file}`, import.meta.url))),
];
const VOUCHERCTL = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

const HOME = process.env.HOME ?? "";

describe("npm start on a machine without servers", () => {
  let directory: string;
  let port: number;
  let first: Started;
  // One test starts each service, and a later test ends it.
  let next: Started;
  let lender: Started;
  /** The folder of a service with the operator's own database. */
  let folder: string;

  /** Runs a program in the folder of `npm start`, without the variable PORT. */
  const runThere = (args: string[], more: Record<string, string> = {}) =>
    startNode(args, { HOME, ...more }, directory).ended;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "voucher-start-"));
    // Under root, Postgres runs as another user, who needs access to the folder.
    chmodSync(directory, 0o755);
    port = await findSteadyPort();
    first = startIn(directory, port);
    await untilReady(first);
  });

  afterAll(async () => {
    for (const started of [first, next, lender].filter(Boolean)) await interrupt(started);
    for (const used of [directory, folder].filter(Boolean)) rmSync(used, { recursive: true, force: true });
  });

  it("npm start prints an address, a key and example calls, within 80 columns and 24 lines", async () => {
    await untilStarted(() => first.output().includes("  password "));
    const screen = first.output().slice(first.output().indexOf("The API is at ")).split("\n");
    expect(screen.length).toBeLessThanOrEqual(24);
    expect(screen.filter((line) => line.length > 80)).toEqual([]);
    for (const words of ["npm run demo -- --marketplace", `http://localhost:${port}/docs`]) {
      expect(first.output()).toContain(words);
    }
    tryPartnerCommands(first.output());
  });

  it("the first npm start prints one line per step, and writes its processes' log to a file", () => {
    const [steps = ""] = first.output().split("\nThe API is at ");
    expect(steps.split("\n")).toEqual([
      "Starting Postgres and Redis.",
      expect.stringMatching(/^Prepared the database: \d+ migrations\.$/),
      "Starting the API and 2 workers.",
      expect.stringMatching(/^Metrics of the API and its workers: /),
      "",
    ]);
    expect(first.output()).not.toContain("Off, ");
    const log = readFileSync(join(directory, ".data/start.log"), "utf8");
    expect(log.match(/"msg":"(listening|working)"/g)).toHaveLength(3);
  });

  it("npm start restarts a killed worker, prints one line, and continues", async () => {
    const isWorker = (pid: number) =>
      spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" }).stdout.includes("workers/main.ts");
    const workers = () => childrenOf(first.child.pid).filter(isWorker);
    const [killed = 0, other] = workers();
    process.kill(killed, "SIGKILL");
    await until(() => first.output().includes("A worker ended (SIGKILL). It starts again in 1 s.\n"));
    await until(() => workers().length === 2);
    expect([workers().includes(killed), workers().includes(other ?? 0)]).toEqual([false, true]);
  });

  it("npm run demo uses a second npm start only while the second npm start runs", async () => {
    const other = await findSteadyPort();
    const second = startIn(directory, other);
    await untilReady(second);
    expect((await runThere([DEMO])).stdout).toContain(`API=http://localhost:${other} `);
    expect(await interrupt(second)).toBe(0);
    expect((await runThere([DEMO])).stdout).toContain(`API=http://localhost:${port} `);
  });

  it("npm start prints its help for --help, and for unknown arguments with status 2", async () => {
    const help = await runThere([START, "--help"]);
    expect(help).toMatchObject({ exitCode: 0, stderr: "", stdout: expect.stringMatching(/^Usage: npm start/) });
    const wrong = ["--verbose", "now", "--help=yes", "-x", "--workers=0", "--workers=two", "--apis=5", "--apis"];
    const refused = await Promise.all(wrong.map((argument) => runThere([START, argument])));
    for (const [at, { exitCode, stdout, stderr }] of refused.entries()) {
      expect({ exitCode, stdout }, wrong[at]).toEqual({ exitCode: 2, stdout: "" });
      expect(stderr).toContain(`\n\n${help.stdout.trim()}`);
    }
  });

  it("npm start prints a password for the queue dashboard and the operators' forms", async () => {
    const [, pages = "", password = ""] = /(\S+) +password (\S+)/.exec(first.output()) ?? [];
    const address = `${pages}/queues`;
    const open = (given: string, path = "") =>
      fetch(address + path, { headers: { authorization: `Basic ${Buffer.from(`:${given}`).toString("base64")}` } });
    expect(address).toBe(`http://localhost:${port}/ops/queues`);
    expect((await open(`${password}x`)).status).toBe(401);
    expect((await open(password)).status).toBe(200);
    expect((await open(password, "/../organizations/new")).status).toBe(200);
  });

  it("npm run demo finds the running service, and prints a new key and new codes in each run", async () => {
    for (const _ of [1, 2]) {
      const { exitCode, stdout, stderr } = await runThere([DEMO]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      const blank = (text: string) => text.replaceAll(/pvk_\w+|[0-9A-Z]{4}(?:-[0-9A-Z]{4}){3}/g, "…");
      const [commands = "", left] = stdout.split("Each run leaves");
      expect(blank(first.output())).toContain(blank(commands).trim());
      expect(left).toMatch(/org_\w{26}[\s\S]*key revoke key_\w{26}\n$/);
      tryPartnerCommands(commands);
    }
    expect((await runThere([DEMO], { NODE_ENV: "production" })).stdout).toMatch(/KEY=pvt_/);
  });

  it("npm run demo without a running service says to run npm start, and starts nothing", async () => {
    const empty = mkdtempSync(join(tmpdir(), "voucher-start-"));
    onTestFinished(() => rmSync(empty, { recursive: true }));
    const stderr = "Start the service first: npm start. Nothing answers at http://localhost:1.\n";
    expect(await startNode([DEMO], { PORT: "1" }, empty).ended).toEqual({ exitCode: 1, stdout: "", stderr });
    expect(readdirSync(empty)).toEqual([]);
  });

  it("npm run demo -- --marketplace prints commands that work for a user and a referrer", async () => {
    const { stdout } = await runThere([DEMO, "--marketplace"]);
    const [listings, bought, closed, referred, link] = tryMarketplaceCommands(stdout);
    expect(listings.listings).toMatchObject([
      { audience: "OpenToAll", referrerOnly: false, available: 20, canBuy: true },
      { audience: "ReferrerOnly", referrerOnly: true, available: 20, canBuy: false },
    ]);
    expect(bought).toMatchObject({ voucher: { status: "Active" }, alreadyConfirmed: false });
    expect(tryMarketplaceCommands(stdout)[1]).toEqual({ ...bought, alreadyConfirmed: true });
    expect(closed).toMatchObject({ code: "referrers_only" });
    expect(referred).toMatchObject({ voucher: { status: "Active" }, alreadyConfirmed: false });
    expect(link).toMatchObject({ voucher: { status: "Active" }, alreadyConfirmed: false });
  });

  it("voucherctl uses the address and the transparency log of the last npm start", async () => {
    const code = /CODE=(\S+)/.exec(first.output())?.[1] ?? "";
    const history = [VOUCHERCTL, "voucher", "history", code, "--json"];
    const { voucher } = JSON.parse((await runThere(history)).stdout);
    expect(voucher.verifyUrl).toBe(`http://localhost:${port}/integrity/events/VoucherInstance/${voucher.id}`);
    const other = await runThere(history, { PORT: "4000" });
    expect(other.stdout).toContain('"http://localhost:4000/integrity/');
    const init = await runThere([VOUCHERCTL, "log", "init", "--json"]);
    expect(JSON.parse(init.stdout)).toMatchObject({ origin: `localhost:${port}/log`, begun: false });
  });

  it("voucherctl that joins a running npm start uses WEBHOOK_SECRET_FILE if it is set", async () => {
    const file = join(directory, "webhook-secret");
    writeFileSync(file, "webhook-secret-of-an-operator-0123456789\n");
    const org = JSON.parse((await runThere([VOUCHERCTL, "org", "create", "--name", "Files", "--json"])).stdout).id;
    const create = ["webhook", "create", "--org", org, "--url", "http://127.0.0.1:9/hook", "--json"];
    const created = await runThere([VOUCHERCTL, ...create], { WEBHOOK_SECRET_FILE: file });
    expect(created).toMatchObject({ exitCode: 0, stderr: "" });
  });

  it("npm start accepts users' tokens of voucherctl user token, with the requested lifetime", async () => {
    const token = async (...more: string[]) =>
      (await runThere([VOUCHERCTL, "user", "token", "--user", "alice", ...more])).stdout;
    const claim = async (bearer: string) => {
      const address = `http://127.0.0.1:${port}/products/prd_none/claim`;
      return (await fetch(address, { method: "POST", headers: { authorization: `Bearer ${bearer}` } })).status;
    };
    expect(await claim(JSON.parse(await token("--json")).token)).toBe(404);
    expect(await claim((await token("--ttl", "1m")).trim())).toBe(404);
    const [, payload = ""] = (await token("--ttl", "30m")).split(".");
    const { sub, iat, exp } = JSON.parse(Buffer.from(payload, "base64url").toString());
    expect(sub).toBe("alice");
    expect(Math.abs(exp - iat - 1_800)).toBeLessThanOrEqual(1);
  });

  it("npm start serves metrics of the API and both workers on the printed ports", async () => {
    const line = await untilStarted(() => /^Metrics of the API and its workers: (.*)$/m.exec(first.output())?.[1]);
    const addresses = line.split(" ");
    expect(new Set(addresses).size).toBe(3);
    const texts = await Promise.all(addresses.map(async (address) => (await fetch(address)).text()));
    const answers = (name: string) => texts.map((text) => text.includes(`# TYPE ${name} `));
    expect(answers("voucher_http_request_duration_seconds")).toEqual([true, false, false]);
    expect(answers("voucher_sweep_duration_seconds")).toEqual([false, true, true]);
  });

  it("npm start fails when another process uses its port, and leaves that process alone", async () => {
    const second = startIn(directory, port);
    await untilStarted(() => second.child.exitCode !== null);
    expect({ exitCode: second.child.exitCode, output: second.output() }).toEqual({
      exitCode: 1,
      output: expect.stringMatching(new RegExp(`^Another process listens on port ${port}\\. .*\\n$`)),
    });
    expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  });

  it("npm start stops everything on Ctrl-C, and the next npm start keeps the data and the demo", async () => {
    const { postgresPort, redisPort } = JSON.parse(readFileSync(join(directory, ".data/servers.json"), "utf8"));
    expect(await interrupt(first)).toBe(0);
    for (const gone of [port, postgresPort, redisPort]) {
      await expect(fetch(`http://127.0.0.1:${gone}/`)).rejects.toThrow();
    }
    next = startOnTerminal(directory, port);
    await untilReady(next);
    await untilStarted(() => stripVTControlCharacters(next.output()).includes("  password "));
    expect(next.output()).not.toContain("KEY=");
    const key = /pvk_[0-9A-Z]+/.exec(first.output())?.[0] ?? "";
    const code = /CODE=(\S+)/.exec(first.output())?.[1] ?? "";
    const response = await fetch(`http://127.0.0.1:${port}/partner/vouchers/${code}`, {
      headers: { "x-api-key": key },
    });
    expect(await response.json()).toMatchObject({ voucher: { status: "Redeemed" } });
  });

  it("npm start on a machine without servers prints readable log lines on a terminal after its banner", async () => {
    // Sends Ctrl-C from the terminal.
    next.child.stdin?.write("\x03");
    await next.ended;
    const [before = "", after = ""] = stripVTControlCharacters(next.output()).split("The API is at ");
    expect(before).not.toMatch(/INFO/);
    expect(after).not.toMatch(/: (listening|working|serving metrics)/);
    expect(after).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: worker: draining/m);
    expect(next.output()).not.toContain('{"level"');
  });

  it("voucherctl, npm run demo and workers need DATABASE_URL if npm start uses a given database", async () => {
    folder = mkdtempSync(join(tmpdir(), "voucher-start-"));
    chmodSync(folder, 0o755);
    const { postgresPort, redisPort, postgresPassword } = JSON.parse(
      readFileSync(join(directory, ".data/servers.json"), "utf8"),
    );
    // A second `npm start`, in another folder, whose embedded servers stand for the operator's own servers.
    lender = startIn(directory, port);
    await untilReady(lender);
    const lent = JSON.parse(readFileSync(join(directory, ".data/servers.json"), "utf8"));
    expect(lent.postgresPassword).toBe(postgresPassword);
    expect([lent.postgresPort, lent.redisPort]).not.toEqual([postgresPort, redisPort]);
    const DATABASE_URL = `postgresql://postgres:${lent.postgresPassword}@127.0.0.1:${lent.postgresPort}/postgres`;
    const own = { DATABASE_URL, REDIS_URL: `redis://:${lent.redisPassword}@127.0.0.1:${lent.redisPort}/1` };
    const other = await findSteadyPort();
    const there = (args: string[], more = {}) => startNode(args, { HOME, ...more }, folder).ended;
    const service = startNode([START], { HOME, PORT: String(other), ...own }, folder);
    await untilReady(service);
    const sentence = "The running service uses servers of your own. Set DATABASE_URL and REDIS_URL here too.";
    const refused = await there([VOUCHERCTL, "org", "create", "--name", "Lost"]);
    expect(refused).toMatchObject({ exitCode: 78, stdout: "", stderr: expect.stringContaining(sentence) });
    expect(await there([DEMO])).toEqual({ exitCode: 1, stdout: "", stderr: `${sentence}\n` });
    expect(await there(WORKER)).toEqual({ exitCode: 78, stdout: "", stderr: `${sentence}\n` });
    expect((await there([VOUCHERCTL, "org", "list", "--json"], own)).exitCode).toBe(0);
    expect(readdirSync(join(folder, ".data")).toSorted()).toEqual(["servers.json", "start.log"]);
    expect(await interrupt(service)).toBe(0);
    next = startIn(folder, other);
    await untilReady(next);
    expect(next.output()).toMatch(
      /The last start used the database of DATABASE_URL\. Without it, .* in \.data, which is new and empty\.\n/,
    );
  });

  it.each(["Postgres", "Redis"])("npm start ends with one sentence when its %s is killed", async (server) => {
    const [started, data] = server === "Redis" ? [next, join(folder, ".data")] : [lender, join(directory, ".data")];
    const { redisPort, redisPassword } = JSON.parse(readFileSync(join(data, "servers.json"), "utf8"));
    const redis = new Redis(redisPort, { password: redisPassword });
    redis.on("error", () => undefined);
    const [, ofRedis] = /process_id:(\d+)/.exec(await redis.info("server")) ?? [];
    const [ofPostgres] = readFileSync(join(data, "postgres/postmaster.pid"), "utf8").split("\n");
    const pid = Number(server === "Redis" ? ofRedis : ofPostgres);
    expect(pid).toBeGreaterThan(1);
    process.kill(pid, "SIGKILL");
    redis.disconnect();
    expect((await started.ended).exitCode).toBe(1);
    expect(started.output()).toMatch(
      new RegExp(
        `^${server} has ended\\. Its log is \\.data/${server.toLowerCase()}/server\\.log\\. So everything stops\\.$`,
        "m",
      ),
    );
  });

  it("npm start refuses PORT=0 in one sentence, before it starts a server", async () => {
    const started = startIn(directory, 0);
    await untilStarted(() => started.child.exitCode !== null);
    expect(started.output()).toMatch(/^PORT is 0, .*\n$/);
  });

  it("npm start on a machine without servers leaves no process of the service if npm start is killed", async () => {
    const killed = startIn(directory, port);
    await untilReady(killed);
    const service = childrenOf(killed.child.pid);
    expect(service).toHaveLength(3);
    killed.child.kill("SIGKILL");
    await until(() => service.every((pid) => !isAlive(pid)));
    // The next start finds and stops these servers.
    next = startIn(directory, port);
    await untilReady(next);
  });

  it("npm start ends on Ctrl-C even if a worker is frozen, and kills that worker", async () => {
    const argumentsOf = (pid: number) =>
      spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" }).stdout;
    const service = childrenOf(next.child.pid);
    const worker = service.find((pid) => argumentsOf(pid).includes("workers/main.ts")) ?? 0;
    expect(worker).toBeGreaterThan(1);
    process.kill(worker, "SIGSTOP");
    onTestFinished(() => void (isAlive(worker) && process.kill(worker, "SIGKILL")));
    next.child.kill("SIGINT");
    await until(() => next.child.exitCode !== null);
    expect(next.child.exitCode).toBe(0);
    expect(next.output()).toContain("One worker did not end within 20 seconds, and was killed.\n");
    expect(service.filter(isAlive)).toEqual([]);
  });
});

/** Starts `npm start` on a terminal, which script(1) provides. Its standard input is the terminal's. */
function startOnTerminal(directory: string, port: number): Started {
  const command = ["-qec", `'${process.execPath}' '${START}'`, "/dev/null"];
  return startProgram("script", command, { HOME, PORT: String(port), TERM: "dumb" }, directory, { stdin: "pipe" });
}

function childrenOf(pid: number | undefined): number[] {
  const { stdout } = spawnSync("ps", ["-o", "pid=", "--ppid", String(pid)], { encoding: "utf8" });
  return stdout.split("\n").filter(Boolean).map(Number);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Runs the partner's commands of a demo in a shell, and expects their documented results. */
function tryPartnerCommands(output: string): void {
  const lines = output
    .slice(output.indexOf("export API="))
    .replaceAll(/ \\\n +/g, " ")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("export ") || line.startsWith("curl "));
  const [address = "", key = "", lookUp = "", reserve = "", redeem = ""] = lines;
  const paste = (line: string) => execFileSync("bash", ["-c", `${address}\n${key}\n${line}`], { encoding: "utf8" });

  expect(JSON.parse(paste(lookUp))).toMatchObject({ voucher: { status: "Active" }, reservation: null });
  expect(JSON.parse(paste(reserve))).toMatchObject({ ticket: expect.stringMatching(/^rsv_/) });
  const redeemed = JSON.parse(paste(redeem));
  expect(redeemed).toMatchObject({ redeemed: true, alreadyConfirmed: false });
  expect(JSON.parse(paste(redeem))).toEqual({ ...redeemed, alreadyConfirmed: true });
}

/** Runs the marketplace's commands of a demo in a shell, and returns the responses. */
function tryMarketplaceCommands(output: string) {
  const lines = output.split("\n").map((line) => line.trim());
  const exports = lines.filter((line) => line.startsWith("export ")).join("\n");
  return lines
    .filter((line) => /^curl .*(marketplace|\/r\/)/.test(line))
    .map((line) => JSON.parse(execFileSync("bash", ["-c", `${exports}\n${line}`], { encoding: "utf8" })));
}
