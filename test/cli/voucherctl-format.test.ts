import { InvalidArgumentError } from "commander";
import { expect, it } from "vitest";
import { dollars, duration, subject, text } from "../../src/acts/fields.ts";
import { readTyped } from "../../src/cli/field-option.ts";
import { formatCount, formatDuration, formatUsd, formatUtcWithZone, pluralize } from "../../src/cli/format.ts";
import { integer, time } from "../../src/cli/options.ts";
import { openProgress } from "../../src/cli/progress.ts";

it("voucherctl refuses option values of the wrong kind, such as a word for a number", () => {
  const refused: [read: (text: string) => unknown, ...texts: string[]][] = [
    [time("end"), "tomorrow", "2027-13-01", "2027-02-30", "1e9", "", "31.12.2027", "12/31/2027", "2027/12/31"],
    [
      time("end"),
      "20271231",
      "2027-1-5",
      "31 Dec 2027",
      "2027-12",
      "46752",
      " 2027-12-31",
      "2027-12-31Z",
      "२०२७-१२-३१",
    ],
    [time("start"), "2099-01-01T00:00:00", "2099-02-29T00:00:00Z", "2099-01-01T24:00:00Z", "2099-01-01 00:00Z"],
    [integer(1, 1_200), "0", "-1", "1.5", "1e3", "1201", ""],
    [(given) => readTyped(dollars("Price"), given, undefined), "free", "1,5", "NaN", "-1", "1.999", "10000000000"],
    [(given) => readTyped(duration("Grace"), given, undefined), "24", "-1h", "1w", "1.5h", "h"],
    [(given) => readTyped(text("Name", 200), given, undefined), "", "   ", "two\nlines", "x".repeat(201)],
    [(given) => readTyped(subject("User"), given, undefined), "", "x".repeat(256), "erased:x"],
  ];
  for (const [read, ...texts] of refused)
    for (const text of texts) expect(() => read(text), text).toThrow(InvalidArgumentError);
});

it("an option's date without a time means the start or the end of that day, by the option's use", () => {
  const read = (text: string) => (["start", "end", "rangeEnd"] as const).map((use) => time(use)(text).toISOString());
  expect(read("2096-02-29")).toEqual([
    "2096-02-29T00:00:00.000Z",
    "2096-02-29T23:59:59.999Z",
    "2096-03-01T00:00:00.000Z",
  ]);
  expect(new Set(read("2099-06-30T12:00Z"))).toEqual(new Set(["2099-06-30T12:00:00.000Z"]));
  expect(new Set(read("2099-06-30T12:00:00.250+02:00"))).toEqual(new Set(["2099-06-30T10:00:00.250Z"]));
});

it("voucherctl prints numbers with separated thousands, dollars with cents and times in UTC", () => {
  expect([0, 999, 1_000, 10_000_000].map(formatCount)).toEqual(["0", "999", "1,000", "10,000,000"]);
  expect([0, 1, 1_000].map((count) => pluralize(count, "leaf", "leaves"))).toEqual([
    "0 leaves",
    "1 leaf",
    "1,000 leaves",
  ]);
  expect([0, 0.01, 19.9, 9_999_999_999.99].map(formatUsd)).toEqual(["$0.00", "$0.01", "$19.90", "$9,999,999,999.99"]);
  expect(formatUtcWithZone(new Date("2027-12-31T23:59:59.999+02:00"))).toBe("2027-12-31 21:59:59 UTC");
});

it("voucherctl rounds durations to one unit", () => {
  const seconds = [-5, 0, 400, 59.4, 59.6, 90, 3_599, 3_600, 172_799, 172_800, 864_000];
  const shown = ["0 s", "0 s", "7 min", "59 s", "1 min", "2 min", "60 min", "1 h", "48 h", "2 d", "10 d"];
  expect(seconds.map((s) => formatDuration(s * 1_000))).toEqual(shown);
});

const CLEAR = "\x1b[K";

/** Makes a terminal that records its output, and a clock that moves only when the test sets it. */
function onTerminal(total: number, columns = 80) {
  const written: string[] = [];
  const clock = { ms: 5_000 };
  const terminal = { columns, write: (text: string) => written.push(text) > 0 };
  const progress = openProgress(terminal as never, "Issuing", "vouchers", total, () => clock.ms);
  return { written, clock, progress };
}

it("a progress bar shows the rate and the remaining time after a second", () => {
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

it("a progress bar is drawn at most ten times a second, and is removed at the end", () => {
  const { written, clock, progress } = onTerminal(100);
  progress.end();
  expect(written).toEqual([]);
  for (let done = 1; done <= 100; done++) {
    progress.advance(done);
    clock.ms += 10;
  }
  expect(written).toHaveLength(10);
  progress.end();
  progress.end();
  expect(written.slice(10)).toEqual([`\r${CLEAR}`]);
});

it("a progress bar fits on the narrowest terminal, and counts beyond the expected total", () => {
  const { written, clock, progress } = onTerminal(10, 20);
  clock.ms += 2_000;
  progress.advance(25_000);
  expect(written).toEqual([`\rIssuing 25,000 of 2${CLEAR}`]);
});
