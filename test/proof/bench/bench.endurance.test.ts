import { type ChildProcess, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { startNode } from "../../support/child-process.ts";
import type { Case } from "./cases.ts";
import { type Player, playCase } from "./play-case.ts";
import type { BenchServers, Subject } from "./stage.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const SHORT = ["--quick", "--seconds", "1", "--warm-up", "1", "--connections", "4"];

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGTERM");
});

it("a turn whose supply is used up does not count, and is repeated with twice the supply", async () => {
  const server = createServer((_, response) => response.end("{}")).listen(0, "127.0.0.1");
  await once(server, "listening");
  const wanted: number[] = [];
  let played = 0;
  const vouchers: Subject[] = [];
  const stage = {
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
  const running = { id: "service", ports: [(server.address() as AddressInfo).port], check: () => undefined };
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
  expect([series?.rounds.length, played]).toEqual([1, 3]);
  expect(wanted.slice(0, 2)).toEqual([1_008, 2_008]);
});

/** Time limit on a busy machine. Milliseconds. */
const TIMEOUT_MS = 600_000;

it(
  "npm run bench measures every contender, including another working copy, and prints one table per case",
  async () => {
    const args = ["--cases", "redeem,checkout,claim", "--against", ROOT];
    const { exitCode, stdout, stderr } = await runBench([...SHORT, ...args]);
    expect(exitCode, stderr).toBe(0);
    const rows = stdout.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| -"));
    const cells = rows.map((row) => row.split(/ *\| */).slice(1));
    const own = ["this service, 1 API + 1 worker", "the service in --against, 1 API + 1 worker"];
    const a = "(a) one transaction per request, 2 processes";
    const d = "(d) group commit in the API, 1 process";
    expect(cells.map(([first]) => first)).toEqual([
      ...["Redeem by code, 4 connections", ...own, a, "(c) Express, a constant, nothing else", d],
      ...["Checkout: look up, reserve, redeem by ticket, 4 connections", ...own, a, d],
      ...["Claim, 4 connections", ...own],
    ]);
    for (const [, rate] of cells.filter(([first]) => !first?.includes("connections"))) {
      expect(Number(rate)).toBeGreaterThan(0);
    }
  },
  TIMEOUT_MS,
);

it("npm run bench stops its servers and exits with the error when an answer cannot be read", async () => {
  const folder = mkdtempSync(join(tmpdir(), "voucher-bench-test-"));
  chmodSync(folder, 0o755);
  try {
    // A working copy whose API answers every request with 200 and no JSON.
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
