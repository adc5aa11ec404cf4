import { expect, it } from "vitest";
import { DatabaseClock } from "../../../src/platform/db/database-clock.ts";

const START = Date.parse("2027-02-14T12:00:00Z");

it("the database's clock runs on between two readings", () => {
  const { clock, pass } = openClock();
  pass(500);
  expect([clock.now().getTime(), clock.steadyNow().getTime()]).toEqual([START + 500, START + 500]);
});

it("the database's clock follows small differences, however many, and steps back", () => {
  const { read } = openClock();
  for (let ahead = 5_000; ahead <= 50_000; ahead += 5_000)
    expect(read(1_000, ahead)).toEqual({ now: ahead, steady: ahead, ahead: 0 });
  expect(read(1_000, -3_600_000)).toEqual({ now: -3_600_000, steady: -3_600_000, ahead: 0 });
});

it("the database's clock keeps the steady time through a jump ahead, until it is right or trusted again", () => {
  const { read } = openClock();
  const jumped = { now: 3_600_000, steady: 0, ahead: 3_600_000 };
  expect(read(1_000, 3_600_000)).toEqual(jumped);
  expect(read(600_000, 3_600_000)).toEqual(jumped);
  expect(read(1_000, 0)).toEqual({ now: 0, steady: 0, ahead: 0 });
  expect(read(1_000, 3_600_000)).toEqual(jumped);
  expect(read(1_000, 3_600_000, new Date(START))).toEqual({ now: 3_600_000, steady: 3_600_000, ahead: 0 });
});

it("the database's clock shows no jump after a frozen process has read its first answer late", () => {
  const { clock, pass } = openClock();
  pass(30_000);
  clock.observe(new Date(START), null, 0);
  pass(1_000);
  clock.observe(new Date(START + 31_000), null);
  expect([clock.aheadMs, clock.now().getTime()]).toEqual([0, START + 31_000]);
});

/** A clock, and a function that lets time pass and reads a database that is ahead by as much. */
function openClock() {
  let passedMs = 0;
  const clock = new DatabaseClock(() => passedMs);
  const read = (waitMs: number, aheadMs: number, trustedAt: Date | null = null) => {
    passedMs += waitMs;
    clock.observe(new Date(START + passedMs + aheadMs), trustedAt);
    return {
      now: clock.now().getTime() - START - passedMs,
      steady: clock.steadyNow().getTime() - START - passedMs,
      ahead: clock.aheadMs,
    };
  };
  read(0, 0);
  return { clock, read, pass: (ms: number) => (passedMs += ms) };
}
