import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { closeAll, openLifetime } from "../../src/platform/lifetime.ts";

it("a Lifetime closes its resources in reverse order, one by one, even if one of them fails", async () => {
  const lifetime = openLifetime();
  const told: string[] = [];
  const open = (name: string, fails = false) => ({
    async close() {
      told.push(`${name} closes`);
      await sleep(2);
      if (fails) throw new Error(`${name} failed`);
      told.push(`${name} closed`);
    },
  });
  const pool = open("pool");
  expect(lifetime.use(pool)).toBe(pool);
  lifetime.use(open("committer", true));
  lifetime.use(open("server"));
  await expect(lifetime.close()).rejects.toThrow("committer failed");
  expect(told).toEqual(["server closes", "server closed", "committer closes", "pool closes", "pool closed"]);
});

it("a Lifetime aborts running work only if closing takes too long", async () => {
  const long = openLifetime(5);
  long.use({ close: () => new Promise((resolve) => long.endRuns.addEventListener("abort", () => resolve())) });
  await long.close();
  expect(long.endRuns.aborted).toBe(true);
  const short = openLifetime(5);
  short.use({ close: async () => undefined });
  await short.close();
  await sleep(10);
  expect(short.endRuns.aborted).toBe(false);
});

it("closeAll closes every resource, and rejects only after all resources have closed", async () => {
  let closed = false;
  const slow = {
    async close() {
      await sleep(5);
      closed = true;
    },
  };
  await expect(closeAll([{ close: () => Promise.reject(new Error("broken")) }, slow])).rejects.toThrow("broken");
  expect(closed).toBe(true);
});
