import { afterEach, expect, it, vi } from "vitest";
import { StallMeter } from "../../../src/core/metrics/stall-meter.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("a stall of the event loop is reported once, even if the meter is read before the next timer fires", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  let nowMs = 5_000;
  const pass = (ms: number, ticks: number) => {
    nowMs += ms;
    vi.advanceTimersByTime(ticks * 10);
  };
  const stalls = new StallMeter(() => nowMs);
  pass(10, 1);
  expect(stalls.takeLongestMs()).toBe(0);
  pass(310, 0);
  pass(0, 1);
  pass(30, 1);
  expect(stalls.takeLongestMs()).toBe(300);
  pass(10, 1);
  expect(stalls.takeLongestMs()).toBe(0);
  pass(60, 0);
  expect(stalls.takeLongestMs()).toBe(50);
});
