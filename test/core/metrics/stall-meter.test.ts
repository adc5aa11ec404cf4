import { afterEach, expect, it, vi } from "vitest";
import { StallMeter } from "../../../src/core/metrics/stall-meter.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("a stall is reported once, even when it is read before the first timer after it", () => {
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

it("a process is stalling while long stalls follow each other within two minutes, and not after one alone", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  let nowMs = 5_000;
  const stalls = new StallMeter(() => nowMs);
  const stall = () => {
    nowMs += 120;
    vi.advanceTimersByTime(10);
  };
  const work = (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      nowMs += 100;
      vi.advanceTimersByTime(10);
    }
  };
  stall();
  expect(stalls.stallingMs).toBe(0);
  work(100_000);
  stall();
  expect(stalls.stallingMs).toBe(100_120);
  work(119_000);
  stall();
  expect(stalls.stallingMs).toBe(219_240);
  work(121_000);
  expect(stalls.stallingMs).toBe(0);
  stall();
  expect(stalls.stallingMs).toBe(0);
});
