import { expect, it } from "vitest";
import { showKills } from "./kills.ts";
import { findContradiction } from "./play-case.ts";
import { CAN_READ_USAGE, readCpuMicros, withChildren } from "./process-usage.ts";
import { judgeGrowth, type Measured } from "./soak-growth.ts";
import { median, quantile, type Round, showCase } from "./table.ts";

it("the median and quantiles interpolate between values", () => {
  expect([median([5, 1, 3]), median([4, 1, 3, 2]), median([])]).toEqual([3, 2.5, Number.NaN]);
  expect([0, 0.5, 1].map((share) => quantile([30, 20, 10, 0], share))).toEqual([0, 15, 30]);
  expect(quantile([0, 10, 20, 30], 0.99)).toBeCloseTo(29.7);
});

function round(rate: number, worker = 0): Round {
  return { rate, p50Ms: 1, p99Ms: 2, cpu: { api: 100, worker, redis: 10, postgres: 1, client: 5 }, walBytes: 700 };
}

/** Splits a Markdown table into the cells of each line, with or without bold marks. */
const bold = (table: string): string[][] => table.split("\n").map((line) => line.split(/ *\| */).slice(1, -1));
const cells = (table: string): string[][] => bold(table.replaceAll("**", ""));
const after = (row: string[] | undefined): string | undefined => row?.slice(1).join("|");

it("the benchmark's table shows medians, half the range, the ratio per round and the CPU time", () => {
  const service = { contender: "service" as const, rounds: [round(150, 20), round(200, 20), round(100, 30)] };
  const a = { contender: "a" as const, rounds: [round(100), round(50), round(50)] };
  const [head, , first, second] = cells(showCase("Redeem", [service, a]));
  expect(head?.slice(0, 9)).toEqual(["Redeem", "/s", "± %", "× (a)", "p50 ms", "p99 ms", "CPU µs", "× (a)", "API"]);
  expect(after(first)).toBe("150|33|2.00|1.0|2.0|131|1.18|100|20|10|1|5|700");
  expect(second?.slice(1, 8)).toEqual(["50", "50", "1.00", "1.0", "2.0", "111", "1.00"]);
});

it("the benchmark's table includes a second working copy if there is one, and omits missing measures", () => {
  const service = { contender: "service" as const, rounds: [round(90, Number.NaN)] };
  const a = { contender: "a" as const, rounds: [round(50)] };
  const [head, , first] = cells(showCase("Redeem", [service, a, { contender: "against", rounds: [round(100)] }]));
  expect(head?.[3]).toBe("× against");
  expect(first?.slice(3, 10)).toEqual(["0.90", "1.0", "2.0", "", "", "100", ""]);
});

it("the benchmark's table prints the best value of each column in bold, including ties", () => {
  const service = { contender: "service" as const, rounds: [{ ...round(150, 20), p50Ms: 0.98 }] };
  const a = { contender: "a" as const, rounds: [{ ...round(100), p99Ms: 3 }] };
  const i = { contender: "i" as const, rounds: [{ ...round(50, 30), walBytes: 650, p99Ms: Number.NaN }] };
  const [, , first, second, third] = bold(showCase("Redeem", [service, a, i]));
  expect(after(first)).toBe("**150**|0|**1.50**|**1.0**|**2.0**|131|1.18|**100**|**20**|**10**|**1**|5|700");
  // Contender (a) has no worker, so the worker's column is never bold for it.
  expect(after(second)).toBe("100|0|1.00|**1.0**|3.0|**111**|**1.00**|**100**|0|**10**|**1**|5|700");
  expect(after(third)).toBe("50|0|0.50|**1.0**||141|1.27|**100**|30|**10**|**1**|5|**650**");
});

it("the benchmark's table of kills counts each server's kills, and prints the smallest losses in bold", () => {
  const kept = { contender: "a" as const, kills: { Redis: 2, "api 0": 3 }, redeems: 9, confirmed: 8, violations: [] };
  const untrue = { rule: "a 200 stays true", detail: "order-1", exchanges: [] };
  const lost = { ...kept, contender: "e" as const, kills: { "worker 0": 5 }, violations: [untrue] };
  const shown = showKills([
    { ...kept, newTwice: 0, redeemedTwice: 0, unanswered: 1 },
    { ...lost, newTwice: 2, redeemedTwice: 0, unanswered: 0 },
  ]);
  const [, , first, second] = bold(shown);
  expect(first?.slice(1)).toEqual(["5", "9", "8", "**0**", "**0**", "**0**", "1"]);
  expect(second?.slice(1)).toEqual(["5", "9", "8", "1", "2", "**0**", "**0**"]);
  expect(shown).toContain("(a) one transaction per request, 2 processes: kills of api 0: 3, Redis: 2\n");
  expect(shown).toContain("(e) BullMQ by the book, 1 API + 1 worker: kills of worker 0: 5\n");
});

const [first, second] = [
  { subject: "voucher 1", receipt: "code 1" },
  { subject: "voucher 2", receipt: "code 2" },
];
const other = { ...first, receipt: "code 3" };

it.each([
  ["agree when each answer is stored once", [first, second], [second, first], null],
  ["agree when the client stopped before it read the last answer", [first], [first, second], null],
  ["contradict on an answer that is not stored", [first, second], [first], "code 2, the database contains nothing"],
  ["contradict on an answer that is stored with another code", [other], [first], "the database contains code 1"],
  ["contradict on a voucher redeemed twice", [first], [first, other], "voucher 1 is in the database twice"],
  ["contradict on a voucher with two users", [], [first, { ...second, receipt: "code 1" }], "code 1 was issued twice"],
  ["contradict on a redemption confirmed twice", [first, first], [first], "voucher 1 was answered twice"],
])("the benchmark's check of answers against database rows %s", (_, answered, stored, contradiction) => {
  const found = findContradiction(answered, stored);
  if (contradiction === null) expect(found).toBeNull();
  else expect(found).toContain(contradiction);
});

it.runIf(CAN_READ_USAGE)(
  "the measured CPU time of a process can include its children, and is zero after the process's end",
  () => {
    const before = readCpuMicros([process.pid]);
    const own = process.cpuUsage();
    while (process.cpuUsage(own).user + process.cpuUsage(own).system < 300_000);
    const spent = readCpuMicros([process.pid]) - before;
    expect(spent).toBeGreaterThan(250_000);
    expect(spent).toBeLessThan(600_000);
    expect(withChildren(process.ppid)).toEqual(expect.arrayContaining([process.ppid, process.pid]));
    expect(withChildren(process.pid)).not.toContain(process.ppid);
    expect(readCpuMicros([2 ** 22 + 1])).toBe(0);
  },
);

it("judgeGrowth distinguishes growth with time from growth with calls, and reports unexpected growth", () => {
  let calls = 0;
  const samples = Array.from({ length: 80 }, (_, n) => {
    calls += Math.floor(n / 10) % 2 === 0 ? 400 : 100;
    const measured: Measured[] = [
      { kind: "table", owner: "vouchers", name: "vouchers_pkey, bytes", value: 80 * calls },
      { kind: "table", owner: "batches", name: "batches, bytes", value: 1_000 * calls },
      { kind: "key", owner: "left:*", name: "left:*, keys", value: 100 * n },
      { kind: "key", owner: "kept:*", name: "kept:*, keys", value: 1_000 + 50 * (n % 2) },
      { kind: "memory", owner: "api", name: "api, bytes", value: 2 ** 27 + 2 ** 22 * Math.sin(n) },
      { kind: "heap", owner: "worker", name: "worker's heap, bytes", value: 2 ** 25 + 4_000 * calls },
    ];
    return { hours: n / 60, calls, measured };
  });
  const growths = judgeGrowth(samples);
  expect(growths.filter(({ isUnbounded }) => isUnbounded).map(({ name }) => name)).toEqual([
    "batches, bytes",
    "left:*, keys",
    "worker's heap, bytes",
  ]);
  const [ofVouchers, ofBatches, left] = growths;
  expect(ofVouchers?.reason).toBe("is kept");
  expect([ofBatches?.perHour, ofBatches?.perThousandCalls].map((per) => Math.round(per ?? 0))).toEqual([0, 1_000_000]);
  expect([left?.perHour, left?.perThousandCalls].map((per) => Math.round(per ?? 1))).toEqual([6_000, 0]);
});
