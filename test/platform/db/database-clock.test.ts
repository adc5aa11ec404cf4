import { expect, it } from "vitest";
import { DatabaseClock, type ServerTime } from "../../../src/platform/db/database-clock.ts";

const START = Date.parse("2027-02-14T12:00:00Z");
const YEAR_MS = 365 * 86_400_000;
/** How far a decision's time may be ahead of the process's own time. Milliseconds. */
const SLACK_MS = 1_000;
const RIGHT = { decides: 0, steady: 0, ahead: 0 };
/** A server whose `closed_until` is unset, and whose clock no operator has trusted. */
const NEVER = { trustedAt: null, closedUntil: new Date(0) };

it("a process continues the database's time between two readings of the database's clock", () => {
  const { clock, pass } = openClock();
  pass(500);
  expect(clock.steadyNow().getTime()).toBe(START + 500);
});

it("a process follows any number of small corrections of the database's clock", () => {
  const { read } = openClock();
  for (const step of [5_000, -5_000])
    for (let ahead = step; Math.abs(ahead) <= 50_000; ahead += step)
      expect(read(1_000, ahead)).toEqual({ decides: ahead, steady: ahead, ahead: 0 });
});

it("a process ignores a jump of the database's clock until the clock is right again or trusted", () => {
  const { read } = openClock();
  const jumped = { decides: SLACK_MS, steady: 0, ahead: YEAR_MS };
  expect(read(1_000, YEAR_MS)).toEqual(jumped);
  expect(read(600_000, YEAR_MS)).toEqual(jumped);
  expect(read(1_000, 0)).toEqual(RIGHT);
  expect(read(1_000, YEAR_MS)).toEqual(jumped);
  expect(read(1_000, YEAR_MS, { trustedAt: new Date(START) })).toEqual({ decides: YEAR_MS, steady: YEAR_MS, ahead: 0 });
});

it("a process uses the time before a jump of the database's clock even before it notices the jump", () => {
  const { clock, pass } = openClock();
  pass(500);
  expect(clock.timeOf(new Date(START + YEAR_MS)).getTime()).toBe(START + 500 + SLACK_MS);
  expect(clock.timeOf(new Date(START + 400)).getTime()).toBe(START + 400);
});

it("a process's time is not ahead after the database's clock went back by a year and returned", () => {
  const { read } = openClock();
  const closedUntil = new Date(START - 2_000);
  expect(read(1_000, -YEAR_MS, { closedUntil })).toEqual({ decides: 0, steady: -YEAR_MS, ahead: 0 });
  expect(read(1_000, -3_600_000, { closedUntil })).toEqual({ decides: -4_000, steady: -3_600_000, ahead: 0 });
  expect(read(600_000, 0, { closedUntil })).toEqual(RIGHT);
});

it("a process decides nothing if the database's clock was a year behind at the process's start", () => {
  for (const closedMs of [0, START - 5_000, START - 68_000]) {
    const closedUntil = new Date(closedMs);
    const { clock, read, pass } = openClock(-YEAR_MS, { closedUntil }, false);
    const decide = () => clock.timeOf(new Date(START - YEAR_MS), closedUntil);
    expect(decide).toThrow("over a day behind");
    pass(1_000);
    expect(() => read(1_000, -YEAR_MS, { closedUntil })).toThrow("over a day behind");
    expect(read(1_000, 0, { closedUntil })).toEqual(RIGHT);
  }
});

it("a process keeps its host's time if the database's clock is days ahead at the start", () => {
  const { read } = openClock(YEAR_MS, { closedUntil: new Date(START - 5_000) });
  expect(read(1_000, YEAR_MS)).toEqual({ decides: SLACK_MS, steady: 0, ahead: YEAR_MS });
  expect(read(1_000, 0)).toEqual(RIGHT);
});

it("a process uses the database's clock if its host's clock is an hour behind at the start", () => {
  const { read } = openClock(3_600_000);
  expect(read(1_000, 3_600_000)).toEqual({ decides: 3_600_000, steady: 3_600_000, ahead: 0 });
});

it("a process makes no decision while closed_until, the latest closed time, is days ahead of the clock", () => {
  const { clock } = openClock();
  const closed = (aheadMs: number) => new Date(START + aheadMs);
  expect(clock.timeOf(new Date(START), closed(3_600_000))).toEqual(closed(3_600_000));
  for (const now of [START, START + YEAR_MS])
    expect(() => clock.timeOf(new Date(now), closed(YEAR_MS))).toThrow("voucherctl db trust-clock");
});

it("a process that was frozen during its first reading of the database's clock sees no jump", () => {
  const { clock, pass } = openClock();
  pass(30_000);
  clock.observe({ ...NEVER, now: new Date(START) }, 0);
  pass(1_000);
  clock.observe({ ...NEVER, now: new Date(START + 31_000) });
  expect([clock.aheadMs, clock.steadyNow().getTime()]).toEqual([0, START + 31_000]);
});

/**
 * Makes a process's clock. Its `read` lets time pass, and then reads a database whose clock is ahead by `aheadMs`. It
 * returns by how much the times of the process's clock differ from the right time.
 */
function openClock(firstAheadMs = 0, first: Partial<ServerTime> = {}, decides = true) {
  let passedMs = 0;
  const clock = new DatabaseClock(
    () => passedMs,
    () => START + passedMs,
  );
  const read = (waitMs: number, aheadMs: number, said: Partial<ServerTime> = {}) => {
    passedMs += waitMs;
    const seen = { ...NEVER, ...said, now: new Date(START + passedMs + aheadMs) };
    clock.observe(seen);
    return {
      decides: clock.timeOf(seen.now, seen.closedUntil).getTime() - START - passedMs,
      steady: clock.steadyNow().getTime() - START - passedMs,
      ahead: clock.aheadMs,
    };
  };
  if (decides) read(0, firstAheadMs, first);
  else clock.observe({ ...NEVER, ...first, now: new Date(START + firstAheadMs) });
  return { clock, read, pass: (ms: number) => (passedMs += ms) };
}
