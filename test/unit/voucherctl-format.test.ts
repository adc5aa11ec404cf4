import { describe, expect, it } from "vitest";
import {
  formatCount,
  formatDuration,
  formatUsd,
  formatUtc,
  formatUtcWithZone,
  pluralize,
} from "../../src/cli/format.ts";
import { openProgress } from "../../src/cli/progress.ts";

it("formatted values separate thousands", () => {
  expect([0, 7, 999, 1_000, 12_345, 123_456, 10_000_000].map(formatCount)).toEqual([
    "0",
    "7",
    "999",
    "1,000",
    "12,345",
    "123,456",
    "10,000,000",
  ]);
  expect([0, 1, 2, 1_000].map((count) => pluralize(count, "voucher"))).toEqual([
    "0 vouchers",
    "1 voucher",
    "2 vouchers",
    "1,000 vouchers",
  ]);
});

it("formatted values show dollars to the cent, the smallest and the largest", () => {
  expect([0, 0.01, 19.9, 1_234.5, 9_999_999_999.99].map(formatUsd)).toEqual([
    "$0.00",
    "$0.01",
    "$19.90",
    "$1,234.50",
    "$9,999,999,999.99",
  ]);
});

it("formatted values show moments in UTC to the second, in any time zone of the machine", () => {
  const moment = new Date("2027-12-31T23:59:59.999+02:00");
  expect(formatUtc(moment)).toBe("2027-12-31 21:59:59");
  expect(formatUtcWithZone(moment)).toBe("2027-12-31 21:59:59 UTC");
});

it("formatted values round lengths of time to one unit", () => {
  const SECOND = 1_000;
  expect(
    [-5, 0, 400, 59.4, 59.6, 90, 3_599, 3_600, 172_799, 172_800, 864_000].map((s) => formatDuration(s * SECOND)),
  ).toEqual(["0 s", "0 s", "7 min", "59 s", "1 min", "2 min", "60 min", "1 h", "48 h", "2 d", "10 d"]);
});

describe("a progress line", () => {
  const CLEAR = "\x1b[K";

  /** A terminal that remembers, and a clock that stands until it is set. */
  function onTerminal(total: number, columns = 80) {
    const written: string[] = [];
    const clock = { ms: 5_000 };
    const terminal = { columns, write: (text: string) => written.push(text) > 0 };
    const progress = openProgress(terminal as never, "Issuing", "vouchers", total, () => clock.ms);
    return { written, clock, progress };
  }

  it("a progress line tells what is done of what, and after a second how fast and how long it will take", () => {
    const { written, clock, progress } = onTerminal(1_000_000);
    progress.advance(1_000);
    clock.ms += 10_000;
    progress.advance(100_000);
    clock.ms += 90_000;
    progress.advance(1_000_000);
    expect(written).toEqual([
      `\rIssuing 1,000 of 1,000,000 vouchers  0%${CLEAR}`,
      `\rIssuing 100,000 of 1,000,000 vouchers  10%  10,000/s  2 min left${CLEAR}`,
      `\rIssuing 1,000,000 of 1,000,000 vouchers  100%  10,000/s  0 s left${CLEAR}`,
    ]);
  });

  it("a progress line is drawn at most ten times a second, and taken away at the end", () => {
    const { written, clock, progress } = onTerminal(100);
    for (let done = 1; done <= 100; done++) {
      progress.advance(done);
      clock.ms += 10;
    }
    expect(written).toHaveLength(10);
    progress.end();
    progress.end();
    expect(written.slice(10)).toEqual([`\r${CLEAR}`]);
  });

  it("a progress line leaves a terminal alone on which it drew nothing", () => {
    const { written, progress } = onTerminal(100);
    progress.end();
    expect(written).toEqual([]);
  });

  it("a progress line fits on the narrowest terminal, and counts on beyond what it was told", () => {
    const { written, clock, progress } = onTerminal(10, 20);
    clock.ms += 2_000;
    progress.advance(25_000);
    expect(written).toEqual([`\rIssuing 25,000 of 2${CLEAR}`]);
  });
});
