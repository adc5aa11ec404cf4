import { EventEmitter } from "node:events";
import { pino } from "pino";
import { afterEach, expect, it, vi } from "vitest";
import { logErrors } from "../../../src/platform/redis/log-errors.ts";

afterEach(() => {
  vi.useRealTimers();
});

it("logErrors logs the first error at once, and the number of further errors twice a minute", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const lines: { msg: string; leftOut?: number; err: { message: string } }[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const emitter = new EventEmitter();
  logErrors(emitter, log, "Redis connection");
  const fail = (count: number) => {
    for (let n = 0; n < count; n++) emitter.emit("error", new Error("connect ECONNREFUSED"));
  };
  fail(1);
  expect(lines).toMatchObject([{ msg: "Redis connection", err: { message: "connect ECONNREFUSED" } }]);
  fail(40);
  vi.advanceTimersByTime(29_999);
  fail(1);
  expect(lines).toHaveLength(1);
  vi.advanceTimersByTime(1);
  fail(2);
  expect(lines).toMatchObject([{}, { leftOut: 41 }]);
  expect(lines).toHaveLength(2);
});
