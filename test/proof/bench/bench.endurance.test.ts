import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { afterEach, expect, it } from "vitest";
import { verifyAllChains } from "../../../src/core/chain/verify-chains.ts";
import { startNode } from "../../support/child-process.ts";
import type { Case } from "./cases.ts";
import { openFilledStage } from "./filled-stage.ts";
import { type Player, playCase } from "./play-case.ts";
import { processesFor } from "./process-usage.ts";
import { type BenchServers, openBenchServers, type Subject } from "./stage.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SHORT = ["--quick", "--seconds", "1", "--warm-up", "1", "--connections", "4"];

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGTERM");
});

it("a benchmark's round that runs out of vouchers does not count, and is repeated with twice as many", async () => {
  const server = createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const wanted: number[] = [];
  let played = 0;
  const vouchers: Subject[] = [];
  const stage = {
    databaseUrl: "postgresql://127.0.0.1/fake",
    vouchers,
    async ensure(_: string, count: number) {
      wanted.push(count);
      const issued = wanted.length === 1 ? 40 : Math.max(0, 100 * count - vouchers.length);
      for (let n = 0; n < issued; n++) vouchers.push({ id: crypto.randomUUID(), code: "", token: "" });
    },
    db: {
      query: async (_: string, [ids = []]: string[][] = []) => ({
        rows: ids.map((id) => ({ subject: id, receipt: id })),
      }),
    },
  };
  const pauses: string[] = [];
  const running = {
    id: "service",
    ports: [(server.address() as AddressInfo).port],
    check: () => undefined,
    pause: async () => void pauses.push("pause"),
    resume: async () => void pauses.push("resume"),
  };
  const player = { running: { ...running, apiPids: [], workerPids: [], redisPids: [] }, stage } as unknown as Player;
  const loadCase: Case = {
    title: "Fake",
    contenders: ["service"],
    connections: [4],
    supply: "vouchers",
    isRight: () => true,
    proof: { sql: "", receipt: ({ subject }) => subject.id },
    steps: () => [() => ({ method: "GET", path: "/", headers: {} })],
    async afterwards() {
      played += 1;
    },
  };
  const { signal } = new AbortController();
  const options = { rounds: 1, seconds: 1, warmUpSeconds: 0.5, signal, say: () => undefined };
  const servers = { postgresPid: process.pid } as BenchServers;
  const [series] = await playCase(servers, loadCase, 4, [player], options).finally(() => server.close());
  // Four turns: the one that ran out of vouchers, its repetition, the lead-in and the measured turn. `ensure` was
  // called once for the last two.
  expect([series?.rounds.length, played, wanted.length]).toEqual([1, 4, 3]);
  expect(wanted.slice(0, 2)).toEqual([1_008, 2_008]);
  expect(pauses).toEqual(["resume", "pause"]);
});

/** Time limit on a busy machine. Milliseconds. */
const TIMEOUT_MS = 600_000;

it(
  "npm run bench measures every implementation and a second working copy, and prints tables",
  async () => {
    const args = ["--cases", "redeem,checkout,claim", "--against", ROOT];
    const { exitCode, stdout, stderr } = await runBench([...SHORT, ...args]);
    expect(exitCode, stderr).toBe(0);
    const rows = stdout.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| -"));
    const cells = rows.map((row) => row.split(/ *\| */).slice(1));
    const own = ["this service, 1 API + 1 worker", "the service in --against, 1 API + 1 worker"];
    const a = "(a) one transaction per request, 2 processes";
    const c = "(c) Express, a constant, nothing else";
    const d = "(d) group commit in the API, 1 process";
    expect(cells.map(([first]) => first)).toEqual([
      ...["Redeem by code, 4 connections", ...own, a, c, d],
      ...["Checkout: look up, reserve, redeem by ticket, 4 connections", ...own, a, d],
      ...["Claim, 4 connections", ...own, c],
    ]);
    for (const [, rate] of cells.filter(([first]) => !first?.includes("connections"))) {
      expect(Number(rate?.replaceAll("**", ""))).toBeGreaterThan(0);
    }
  },
  TIMEOUT_MS,
);

it(
  "a database that the benchmark fills has valid chains, and vouchers with known codes",
  async () => {
    const how = { signal: new AbortController().signal, say: () => undefined };
    const servers = await openBenchServers(how.say);
    try {
      const stage = await openFilledStage(servers, "filled", ROOT, { vouchers: 100_000, redeemed: 33_000 }, how);
      const { broken, ...verified } = await verifyAllChains({ pool: stage.db });
      expect(broken).toEqual([]);
      // A quarter of the vouchers can be claimed, and a quarter of these are claimed.
      expect(verified).toEqual({ vouchers: 100_000, events: 100_000 + 33_000 + 6_250, erased: 0 });
      await stage.ensure("samples", 100);
      await stage.ensure("vouchers", 40_000);
      for (const { id, code } of [...stage.samples, ...stage.vouchers.slice(0, 100)]) {
        const { rows } = await stage.db.query("SELECT code, status FROM vouchers WHERE id = $1", [id]);
        expect(rows).toEqual([{ code, status: "Active" }]);
      }
      // The CPU time of a Postgres process counts only for the database that it serves.
      expect(await isCounted(servers, "filled", stage.databaseUrl)).toBe(true);
      expect(await isCounted(servers, "filled", servers.postgresUrl())).toBe(false);
      await stage.close();
    } finally {
      await servers.close();
    }
  },
  TIMEOUT_MS,
);

it(
  "npm run bench -- --soak ends by itself and finds no unlimited growth",
  async () => {
    const { exitCode, stdout, stderr } = await runBench(["--soak", "2"]);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(/^\| database_marks, rows .*86 400/m);
    expect(stdout).toMatch(/^\| voucher_events, rows .*is kept/m);
  },
  TIMEOUT_MS,
);

it("npm run bench stops its servers and exits with the error if a response is unreadable", async () => {
  const folder = mkdtempSync(join(tmpdir(), "voucher-bench-test-"));
  chmodSync(folder, 0o755);
  try {
    // A working copy whose API answers every request with 200 but without JSON.
    const copy = join(folder, "copy");
    mkdirSync(join(copy, "src"), { recursive: true });
    for (const path of ["node_modules", "workers", "src/cli"]) symlinkSync(join(ROOT, path), join(copy, path));
    writeFileSync(
      join(copy, "src/main.ts"),
      `import { createServer } from "node:http";
         createServer((_, response) => response.end("nonsense")).listen(process.env.PORT, "127.0.0.1");`,
    );
    const temporary = join(folder, "temporary");
    mkdirSync(temporary);
    const args = ["--cases", "checkout", "--contenders", "c", "--against", copy];
    const { exitCode, stderr } = await runBench([...SHORT, ...args], { TMPDIR: temporary });
    expect(exitCode, stderr).toBe(1);
    expect(stderr).toContain("is not valid JSON");
    expect(readdirSync(temporary)).toEqual([]);
    const running = spawnSync("ps", ["-eo", "args"], { encoding: "utf8" }).stdout;
    expect(running.split("\n").filter((args) => args.includes(temporary))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("npm run bench prints its usage for an invalid command line", async () => {
  const { exitCode, stderr } = await runBench(["--cases", "nonsense"]);
  expect(exitCode).toBe(2);
  expect(stderr).toContain("There is no nonsense");
  expect(stderr).toContain("Usage: npm run bench");
});

function runBench(args: readonly string[], env: Record<string, string> = {}) {
  const { child, ended } = startNode(["test/proof/bench/run.ts", ...args], env);
  children.push(child);
  return ended;
}

/** Whether the benchmark counts the CPU time of this connection's Postgres process for a database. */
async function isCounted({ postgresPid }: BenchServers, database: string, connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
    return processesFor(postgresPid, database).includes(rows[0].pid);
  } finally {
    await client.end();
  }
}
