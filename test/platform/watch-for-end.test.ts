import { expect, it } from "vitest";
import { watchForEnd } from "../../src/platform/watch-for-end.ts";
import { until } from "../support/until.ts";

it("watchForEnd detects that a key or sign-in has ended, even if the previous check failed", async () => {
  const done = new AbortController();
  let asked = 0;
  const ended = watchForEnd(async () => {
    asked += 1;
    if (asked === 1) throw new Error("the database does not respond");
    return true;
  }, done.signal);
  expect(ended.aborted).toBe(false);
  await until(async () => ended.aborted, 5_000);
  done.abort();
  expect(asked).toBe(2);
});
