import type { ChildProcess } from "node:child_process";
import { afterEach, describe, expect, it } from "vitest";
import { startNode } from "../support/child-process.ts";

/** One turn of a second with four connections: to see that everything runs, not how fast. */
const TINY = ["--rounds", "1", "--seconds", "1", "--connections", "4", "--supply", "10000", "--json"];
/** Far above what it takes; the machine may be busy. Milliseconds. */
const PATIENCE_MS = 600_000;

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGTERM");
});

async function runBench(...args: string[]) {
  const { child, ended } = startNode(["test/bench/run.ts", ...args], {});
  children.push(child);
  const { exitCode, stdout, stderr } = await ended;
  return { exitCode, stderr, result: exitCode === 0 ? JSON.parse(stdout) : null };
}

describe("npm run bench", () => {
  it(
    "lets contenders of every kind play, and checks that each answer left behind what it says",
    async () => {
      const cases = ["--cases", "redeem,checkout", "--contenders", "service,a,b,c,d"];
      const { exitCode, stderr, result } = await runBench(...cases, ...TINY);
      expect(exitCode, stderr).toBe(0);
      const played = result.series.map(({ caseId, contender }: Record<string, string>) => `${caseId} ${contender}`);
      expect(played).toEqual([
        ...["redeem service", "redeem a", "redeem b", "redeem c", "redeem d"],
        ...["checkout service", "checkout a", "checkout d"],
      ]);
      for (const { rounds } of result.series) {
        expect(rounds).toHaveLength(1);
        expect(rounds[0].rate).toBeGreaterThan(0);
        expect(rounds[0].p99Ms).toBeGreaterThanOrEqual(rounds[0].p50Ms);
      }
    },
    PATIENCE_MS,
  );

  it("says how to call it when it does not understand", async () => {
    const { exitCode, stderr } = await runBench("--cases", "nonsense");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("there is no nonsense");
    expect(stderr).toContain("usage: npm run bench");
  });
});
