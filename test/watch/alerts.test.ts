import { describe, expect, it } from "vitest";
import {
  type AlertMessage,
  type AlertState,
  alertBody,
  failingSinceOf,
  followFaults,
  NO_ALERTS,
  recordSent,
  takeDue,
} from "../../src/watch/alerts.ts";

const START = Date.parse("2026-11-26T21:00:00Z");
const FAULT = {
  fault: "f",
  severity: "red",
  what: "Nothing is redeemed",
  subject: "Redis",
  since: "2026-11-26T20:59:00.000Z",
};

it("a fault's beginning is told at once, and its end after a minute without it, with the time of the end", () => {
  const watch = openWatch();
  watch.lookFor(120, () => true);
  expect(watch.kinds).toEqual(["alr_1-begin"]);
  watch.lookFor(60, () => false);
  expect(watch.kinds).toEqual(["alr_1-begin"]);
  watch.lookFor(600, () => false);
  expect(watch.kinds).toEqual(["alr_1-begin", "alr_1-end"]);
  expect(watch.received[1]?.alert.endedAt).toBe(new Date(START + 120_000).toISOString());
});

it("a fault that is gone for less than a minute goes on without a message", () => {
  const watch = openWatch();
  watch.lookFor(3_600, (second) => second % 60 === 0);
  expect(watch.kinds).toEqual(["alr_1-begin"]);
});

it.each([90, 120, 300, 900])("a fault that comes and goes every %i s for a day sends at most 20 messages", (half) => {
  const watch = openWatch();
  watch.lookFor(86_400, (second) => Math.floor(second / half) % 2 === 0);
  expect(watch.kinds.length).toBeLessThanOrEqual(20);
  // The last word is right.
  watch.lookFor(7_200, () => false);
  expect(watch.kinds.at(-1)).toMatch(/-end$/);
});

it("a fault that returns after a calm day is sent at once and ends after a minute again", () => {
  const watch = openWatch();
  watch.lookFor(60, () => true);
  watch.lookFor(86_400, () => false);
  expect(watch.state.alerts).toEqual([]);
  watch.lookFor(15, () => true);
  watch.lookFor(75, () => false);
  expect(watch.kinds).toEqual(["alr_1-begin", "alr_1-end", "alr_2-begin", "alr_2-end"]);
});

it("a rejected message is retried at growing intervals while its fault lasts, and counts as a fault at once", () => {
  const watch = openWatch({ accepts: () => false });
  watch.lookFor(30, () => true);
  expect(watch.tried).toBe(1);
  watch.lookFor(3_600, () => true);
  expect(watch.tried).toBeGreaterThan(5);
  watch.lookFor(86_400, () => true);
  expect(watch.tried).toBeGreaterThan(25);
  expect(watch.tried).toBeLessThan(35);
  expect(watch.failingSince).toEqual(new Date(START));
});

it("a fault that ends before its beginning was accepted is sent in one message", () => {
  let accepts = false;
  const watch = openWatch({ accepts: () => accepts });
  watch.lookFor(30, () => true);
  watch.lookFor(90, () => false);
  accepts = true;
  watch.lookFor(900, () => false);
  expect(watch.kinds).toEqual(["alr_1-end"]);
  expect(watch.failingSince).toBeNull();
});

it("a process that takes over does not send what another one is sending", () => {
  const now = new Date(START);
  const first = takeDue(
    followFaults(NO_ALERTS, [FAULT], now, () => "alr_1"),
    now,
  );
  expect(first.due).toHaveLength(1);
  expect(takeDue(first.state, new Date(START + 20_000)).due).toEqual([]);
  // The sending process has died: a live one ends an attempt within 15 seconds.
  expect(takeDue(first.state, new Date(START + 30_000)).due).toHaveLength(1);
});

describe.each([60, 3_600, 86_400])("when the database's clock is set back by %i s", (back) => {
  it("when the database's clock is set back, a rejected message is retried as soon as otherwise", () => {
    const watch = openWatch({ accepts: () => false });
    watch.lookFor(15, () => true);
    expect(watch.tried).toBe(1);
    watch.setBack(back);
    watch.lookFor(60, () => true);
    expect(watch.tried).toBe(2);
    // Later attempts keep their longer distances.
    watch.lookFor(3_600, () => true);
    watch.setBack(back);
    const { tried } = watch;
    watch.lookFor(600, () => true);
    expect(watch.tried - tried).toBeLessThanOrEqual(1);
    watch.lookFor(3_600, () => true);
    expect(watch.tried).toBeGreaterThan(tried);
    expect(watch.failingSince?.getTime()).toBeLessThanOrEqual(watch.now.getTime());
  });

  it("when the database's clock is set back, the end of a fault is told after a minute", () => {
    const watch = openWatch();
    watch.lookFor(60, () => true);
    watch.lookFor(30, () => false);
    watch.setBack(back);
    watch.lookFor(90, () => false);
    expect(watch.kinds).toEqual(["alr_1-begin", "alr_1-end"]);
    const { since = "", endedAt } = watch.received[1]?.alert ?? {};
    expect(Date.parse(`${endedAt}`)).toBeGreaterThanOrEqual(Date.parse(since));
    expect(Date.parse(`${endedAt}`)).toBeLessThanOrEqual(watch.now.getTime());
  });

  it("when the database's clock is set back, an alert that has ended is forgotten as soon as otherwise", () => {
    const watch = openWatch();
    watch.lookFor(60, () => true);
    watch.lookFor(120, () => false);
    watch.setBack(back);
    watch.lookFor(3_690, () => false);
    expect(watch.state.alerts).toEqual([]);
  });
});

it("the text of a message is one line in which Slack finds no link and no call", () => {
  const evil = { ...FAULT, subject: "<!channel>\n<https://evil.example|click>", endedAt: null };
  const url = "https://vouchers.example/ops";
  const { text, ...rest } = alertBody(evil, url);
  expect(text).toBe(
    `RED: Nothing is redeemed ( !channel   https://evil.example|click ), since 2026-11-26 20:59 UTC. ${url}`,
  );
  expect(rest).toEqual({
    severity: "red",
    what: FAULT.what,
    subject: evil.subject,
    since: FAULT.since,
    endedAt: null,
    url: "https://vouchers.example/ops",
  });
});

/** One receiver and the looks of one process, by a clock that the test moves. */
function openWatch({ accepts = () => true }: { accepts?: () => boolean } = {}) {
  let state: AlertState = NO_ALERTS;
  let ids = 0;
  const own = {
    seconds: 0,
    backSeconds: 0,
    received: [] as AlertMessage[],
    tried: 0,
    /** A look, with the messages that it sends. */
    look(isRed: boolean): void {
      const { now } = own;
      const followed = followFaults(state, isRed ? [FAULT] : [], now, () => `alr_${++ids}`);
      const taken = takeDue(followed, now);
      const results = taken.due.map((message) => ({ message, accepted: accepts() }));
      own.tried += results.length;
      own.received.push(...results.flatMap(({ message, accepted }) => (accepted ? [message] : [])));
      state = recordSent(taken.state, results, now);
    },
    /** Sets the database's clock back. */
    setBack(seconds: number): void {
      own.backSeconds += seconds;
    },
    get now() {
      return new Date(START + (own.seconds - own.backSeconds) * 1_000);
    },
    /** Looks every 15 seconds. */
    lookFor(seconds: number, isRed: (second: number) => boolean): void {
      const until = own.seconds + seconds;
      for (; own.seconds < until; own.seconds += 15) own.look(isRed(own.seconds));
    },
    get kinds() {
      return own.received.map(({ id }) => id);
    },
    get failingSince() {
      return failingSinceOf(state);
    },
    get state() {
      return state;
    },
  };
  return own;
}
