import { beforeEach, expect, it } from "vitest";
import { openUptimeClock } from "../../src/platform/uptime.ts";

let now: { monotonic: number; wall: number; uptime: number };
let reads: number;
let uptimeMs: () => number;

beforeEach(() => {
  now = { monotonic: 1_000, wall: 5_000_000, uptime: 70_000 };
  reads = 0;
  uptimeMs = openUptimeClock({
    monotonicMs: () => now.monotonic,
    wallMs: () => now.wall,
    uptimeMs() {
      reads += 1;
      return now.uptime;
    },
  });
});

it("uptimeMs reads the uptime once in a quarter of a second, and is exact between two readings", () => {
  for (let ms = 0; ms < 250; ms += 10) {
    pass(10);
    expect(uptimeMs()).toBe(now.uptime);
  }
  expect(reads).toBe(1);
  pass(1);
  expect(uptimeMs()).toBe(now.uptime);
  expect(reads).toBe(2);
});

it("uptimeMs includes a suspension of the machine, within a millisecond after the suspension", () => {
  pass(1);
  now.wall += 3_600_000;
  now.uptime += 3_600_000;
  expect(uptimeMs()).toBe(now.uptime);
});

it.each([-3_600_000, 3_600_000])("a change of the wall clock by %i ms does not change uptimeMs", (ms) => {
  now.wall += ms;
  pass(5);
  expect(uptimeMs()).toBe(now.uptime);
  pass(5);
  expect(uptimeMs()).toBe(now.uptime);
  expect(reads).toBe(2);
});

function pass(ms: number): void {
  now.monotonic += ms;
  now.wall += ms;
  now.uptime += ms;
}
