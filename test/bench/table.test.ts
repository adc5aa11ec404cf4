import { expect, it } from "vitest";
import { median, quantile, type Round, showCase } from "./table.ts";

function round(rate: number, worker = 0, redisServers = [10]): Round {
  const cpu = { api: 100, worker, redis: 10, postgres: 1, client: 5 };
  return { rate, p50Ms: 1, p99Ms: 2, cpu, redisServers, walBytes: 2_000.4, commits: 1 / 64, idleShare: 0.125 };
}

function cells(table: string): string[][] {
  return table.split("\n").map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

it("the table of a case takes the median", () => {
  expect(median([5, 1, 3])).toBe(3);
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([])).toBeNaN();
});

it("the table of a case interpolates quantiles", () => {
  expect(quantile([0, 10, 20, 30], 0)).toBe(0);
  expect(quantile([0, 10, 20, 30], 0.5)).toBe(15);
  expect(quantile([0, 10, 20, 30], 0.99)).toBeCloseTo(29.7);
  expect(quantile([0, 10, 20, 30], 1)).toBe(30);
});

it("the table of a case shows medians, half the range, the ratio per round, and the CPU time of all processes without the client", () => {
  const service = { contender: "service" as const, rounds: [round(150, 20), round(200, 20), round(100, 30)] };
  const a = { contender: "a" as const, rounds: [round(100), round(50), round(50)] };
  const [head, , first, second] = cells(showCase("Redeem", [service, a]));
  expect(head?.slice(0, 9)).toEqual(["Redeem", "/s", "± %", "× (a)", "p50 ms", "p99 ms", "CPU µs", "× (a)", "API"]);
  expect(head?.slice(-3)).toEqual(["WAL B", "commits", "idle %"]);
  expect(first?.slice(1, 13)).toEqual(["150", "33", "2.00", "1.0", "2.0", "131", "1.18", "100", "20", "10", "1", "5"]);
  expect(first?.slice(13)).toEqual(["2000", "0.016", "13"]);
  expect(second?.slice(1, 8)).toEqual(["50", "50", "1.00", "1.0", "2.0", "111", "1.00"]);
});

it("the table of a case shows the median of each Redis master of a cluster", () => {
  const rounds = [round(90, 0, [3, 4, 5]), round(90, 0, [4, 9, 5]), round(90, 0, [8, 5, 6])];
  const [head, , own, first] = cells(
    showCase("Redeem", [
      { contender: "service", rounds: [round(90)] },
      { contender: "cluster", rounds },
    ]),
  );
  expect([head, own, first].map((row) => row?.at(-1))).toEqual(["Redis masters", "10", "4 5 5"]);
});

it("the table of a case compares with another working copy if present, and omits what could not be measured", () => {
  const service = { contender: "service" as const, rounds: [round(90, Number.NaN)] };
  const a = { contender: "a" as const, rounds: [round(50)] };
  const [head, , first] = cells(showCase("Redeem", [service, a, { contender: "against", rounds: [round(100)] }]));
  expect(head?.[3]).toBe("× against");
  expect(first?.slice(3, 10)).toEqual(["0.90", "1.0", "2.0", "", "", "100", ""]);
});
