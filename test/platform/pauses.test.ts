import { beforeEach, expect, it } from "vitest";
import { PauseWatch } from "../../src/platform/pauses.ts";

/** Clocks that the tests move, and a watch whose timer the tests run. */
let now: { monotonicMs: number; uptimeMs: number };
let watch: PauseWatch;
let warnings: number;

beforeEach(() => {
  now = { monotonicMs: 10_000, uptimeMs: 1_000_000 };
  warnings = 0;
  const log = {
    warn() {
      warnings += 1;
    },
  };
  watch = new PauseWatch(log, { monotonicMs: () => now.monotonicMs, uptimeMs: () => now.uptimeMs });
  // Ends the watch's real timer, so that only the test runs ticks.
  void watch.close();
});

const isOutdatedNow = () => watch.isOutdated(now.monotonicMs);

it("a request is not outdated if the process was never frozen", () => {
  expect(isOutdatedNow()).toBe(false);
  tickOnTime(10);
  pass(1_900);
  expect(isOutdatedNow()).toBe(false);
});

it("a request that is first read after a freeze is outdated, even before a timer has shown the freeze", () => {
  pass(2_500);
  expect(isOutdatedNow()).toBe(true);
  watch.tick();
  expect(isOutdatedNow()).toBe(true);
});

it("a request from before a freeze is outdated if it is handled after the freeze", () => {
  const receivedAtMs = now.monotonicMs;
  pass(2_500);
  watch.tick();
  tickOnTime(4);
  expect(watch.isOutdated(receivedAtMs)).toBe(true);
  expect(warnings).toBe(1);
});

it("requests after a freeze stay outdated until four timer ticks in a row are on time", () => {
  pass(2_500);
  watch.tick();
  tickOnTime(3);
  pass(600);
  watch.tick();
  tickOnTime(3);
  expect(isOutdatedNow()).toBe(true);
  tickOnTime(1);
  expect(isOutdatedNow()).toBe(false);
});

it("requests after a suspension of the machine are outdated, although the monotonic clock was stopped", () => {
  pass(2_500, "uptime");
  expect(isOutdatedNow()).toBe(true);
});

it("a request that is read more than five seconds after its last byte arrived is outdated", () => {
  const receivedAtMs = now.monotonicMs;
  tickOnTime(20);
  expect(watch.isOutdated(receivedAtMs)).toBe(false);
  tickOnTime(1);
  expect(watch.isOutdated(receivedAtMs)).toBe(true);
});

function pass(ms: number, clock: "both" | "uptime" = "both"): void {
  now.uptimeMs += ms;
  if (clock === "both") now.monotonicMs += ms;
}

function tickOnTime(times: number): void {
  for (let n = 0; n < times; n++) {
    pass(250);
    watch.tick();
  }
}
