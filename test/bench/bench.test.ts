import type { ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { startNode } from "../support/child-process.ts";
import { DROPS } from "./drop.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Time limit on a busy machine. Milliseconds. */
const TIMEOUT_MS = 600_000;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGTERM");
});

const SHORT = ["--quick", "--seconds", "1", "--warm-up", "1", "--connections", "4"];

function runBench(...args: string[]) {
  const { child, ended } = startNode(["test/bench/run.ts", ...args], {});
  children.push(child);
  return ended;
}

/** The cells of all tables that a bench prints. */
async function measure(...args: string[]): Promise<string[][]> {
  const { exitCode, stdout, stderr } = await runBench(...SHORT, ...args);
  expect(exitCode, stderr).toBe(0);
  const rows = stdout.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| -"));
  return rows.map((row) =>
    row
      .split("|")
      .slice(1)
      .map((cell) => cell.trim()),
  );
}

const SERVICE = "this service, 1 API + 1 worker";

describe("npm run bench", () => {
  it(
    "measures every contender, including another working copy, and prints one table per case",
    async () => {
      const cells = await measure("--cases", "redeem,checkout,claim", "--against", ROOT);
      const own = [SERVICE, "the service in --against, 1 API + 1 worker"];
      const a = "(a) one transaction per request, 2 processes";
      const d = "(d) group commit in the API, 1 process";
      const all = [...own, a, "(b) naive BullMQ, 1 API + 1 worker", "(c) Express, a constant, nothing else", d];
      expect(cells.map(([first]) => first)).toEqual([
        ...["Redeem by code, 4 connections", ...all],
        ...["Checkout: look up, reserve, redeem by ticket, 4 connections", ...own, a, d],
        ...["Claim, 4 connections", ...own],
      ]);
      for (const [, rate] of cells.filter(([first]) => !first?.includes("connections"))) {
        expect(Number(rate)).toBeGreaterThan(0);
      }
    },
    TIMEOUT_MS,
  );

  it(
    "plays a drop, in which everyone is told at once what they got",
    async () => {
      const [[title] = [], [service, ...results] = []] = await measure(
        ...["--cases", "drop-3000", "--contenders", "service"],
      );
      expect([title, service]).toEqual([DROPS["drop-3000"].title, SERVICE]);
      expect(results.slice(0, 3)).toEqual(["300", "2700", "0"]);
    },
    TIMEOUT_MS,
  );

  it("prints its usage for an invalid command line", async () => {
    const { exitCode, stderr } = await runBench("--cases", "nonsense");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("There is no nonsense");
    expect(stderr).toContain("Usage: npm run bench");
  });
});
