import { describe, expect, it } from "vitest";
import { type Guarded, MissLimiter } from "../../src/limits/miss-limiter.ts";
import { useCounting } from "../support/counting.ts";
import { itOnOneRedis } from "../support/servers.ts";
import { until } from "../support/until.ts";

const LIMIT = 60;

const counting = useCounting();

/** A limiter with a connection of its own, as each process has. */
async function openLimiter(
  name: string,
  { limit = LIMIT, seconds = 60, redisUrl = counting.servers.redisUrl } = {},
): Promise<MissLimiter> {
  const openCounter = await counting.openCounts(redisUrl);
  return new MissLimiter(limit, openCounter(name, seconds));
}

/** Look-ups that tell how many of them ran. */
function lookUps() {
  const seen = { ran: 0 };
  const look = async (hit: boolean): Promise<boolean> => {
    seen.ran += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return hit;
  };
  return {
    seen,
    guard: (limiter: MissLimiter, hit: boolean, id = "caller") =>
      limiter.guard(
        id,
        () => look(hit),
        (found) => !found,
      ),
  };
}

function countWithheld(outcomes: readonly Guarded<boolean>[]): number {
  return outcomes.filter((outcome) => !outcome.allowed).length;
}

const times = (count: number) => Array.from({ length: count }, (_, index) => index);

it.each([
  1, 5, 16, 60,
])("a limit on misses answers %i misses, however many come at once, and then nothing", async (limit) => {
  const limiter = await openLimiter(counting.newName(), { limit });
  const { seen, guard } = lookUps();
  const outcomes = await Promise.all(times(500).map(() => guard(limiter, false)));
  expect(outcomes.slice(0, limit).every((outcome) => outcome.allowed)).toBe(true);
  expect(countWithheld(outcomes)).toBe(500 - limit);
  const { ran } = seen;
  for (const hit of [true, false]) {
    expect(await guard(limiter, hit)).toEqual({ allowed: false, resetMs: expect.any(Number) });
  }
  // No further look-up is made.
  expect(seen.ran).toBe(ran);
});

it("a limit on misses withholds a hit after the last miss of a burst", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 10 });
  const { guard } = lookUps();
  // Two hits before the tenth miss, which is the twelfth look-up, and one after it.
  const outcomes = await Promise.all(times(100).map((n) => guard(limiter, [3, 9, 50].includes(n))));
  expect(outcomes.map((outcome) => outcome.allowed)).toEqual(times(100).map((n) => n < 12));
});

it("a limit on misses answers any number of hits at once, without a call of Redis", async () => {
  const name = counting.newName();
  const limiter = await openLimiter(name);
  const { seen, guard } = lookUps();
  const hits = times(2_000).map(() => guard(limiter, true));
  expect(seen.ran).toBe(2_000);
  expect(await Promise.all(hits)).toEqual(times(2_000).map(() => ({ allowed: true, result: true })));
  expect(await counting.monitor.count(`limit:${name}`)).toBe(0);
});

it("a limit on misses withholds no hit while one more miss is permitted", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 3 });
  const { guard } = lookUps();
  for (let i = 0; i < 2; i++) await guard(limiter, false);
  expect(countWithheld(await Promise.all(times(200).map(() => guard(limiter, true))))).toBe(0);
});

it("a limit on misses calls Redis once for misses that come together", async () => {
  const name = counting.newName();
  const limiter = await openLimiter(name);
  const { guard } = lookUps();
  await Promise.all(times(500).map(() => guard(limiter, false)));
  // The first one, then all that came after it. The monitor counts the script's own commands as well: up to five each.
  expect((await counting.monitor.count(`limit:${name}`)) / 5).toBeLessThanOrEqual(3);
  expect(await counting.servers.redis.get(`limit:${name}:caller`)).toBe("500");
});

it("a limit on misses counts callers apart", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 2 });
  const { guard } = lookUps();
  for (const id of ["one", "two"]) {
    const outcomes = await Promise.all(times(10).map(() => guard(limiter, false, id)));
    expect(countWithheld(outcomes)).toBe(8);
  }
});

it("a limit on misses counts a look-up that failed as neither hit nor miss", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 1 });
  const { guard } = lookUps();
  const failing = () =>
    limiter.guard(
      "caller",
      () => Promise.reject(new Error("no database")),
      () => true,
    );
  for (let i = 0; i < 20; i++) await expect(failing()).rejects.toThrow("no database");
  expect(await guard(limiter, true)).toEqual({ allowed: true, result: true });
  expect(countWithheld(await Promise.all(times(5).map(() => guard(limiter, false))))).toBe(4);
});

it("a limit on misses says when the window ends, and is forgotten with it", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 2, seconds: 1 });
  const { guard } = lookUps();
  const refused = await until(async () =>
    (await Promise.all(times(10).map(() => guard(limiter, false)))).find((outcome) => !outcome.allowed),
  );
  expect(refused).toMatchObject({ resetMs: expect.any(Number) });
  if (!refused.allowed) expect(refused.resetMs).toBeLessThanOrEqual(1_000);
  await until(async () => (await guard(limiter, true)).allowed);
});

it.each([
  2, 4,
])("a limit on misses in several processes is one limit: a burst at %i processes gets at most as many misses answered as at one process", async (processes) => {
  const name = counting.newName();
  const limiters = await Promise.all(times(processes).map(() => openLimiter(name)));
  const { guard } = lookUps();
  const outcomes = await Promise.all(limiters.flatMap((limiter) => times(300).map(() => guard(limiter, false))));
  expect(outcomes.length - countWithheld(outcomes)).toBe(LIMIT);
  for (const limiter of limiters) expect((await guard(limiter, true)).allowed).toBe(false);
});

it("a limit on misses in several processes reaches another process with its first miss there, which is withheld", async () => {
  const name = counting.newName();
  const [one, other] = [await openLimiter(name), await openLimiter(name)];
  const { guard } = lookUps();
  await Promise.all(times(300).map(() => guard(one, false)));
  const outcomes = await Promise.all(times(100).map((n) => guard(other, n !== 5)));
  expect(outcomes.map((outcome) => outcome.allowed)).toEqual(times(100).map((n) => n < 5));
});

describe("a limit on misses without Redis", () => {
  itOnOneRedis.each(["cut", "jam", "muffle"] as const)("applies in each process alone: %s", async (fault) => {
    const name = counting.newName();
    const limiters = await Promise.all(times(2).map(() => openLimiter(name, { redisUrl: counting.proxy.url })));
    counting.proxy[fault]();
    for (const limiter of limiters) {
      const { guard } = lookUps();
      expect(countWithheld(await Promise.all(times(300).map(() => guard(limiter, false))))).toBe(300 - LIMIT);
      expect((await guard(limiter, true)).allowed).toBe(false);
    }
  });

  itOnOneRedis("stays used when Redis fails during the window, and when it returns", async () => {
    const limiter = await openLimiter(counting.newName(), { redisUrl: counting.proxy.url });
    const { guard } = lookUps();
    expect(countWithheld(await Promise.all(times(30).map(() => guard(limiter, false))))).toBe(0);
    counting.proxy.cut();
    expect(countWithheld(await Promise.all(times(20).map(() => guard(limiter, false))))).toBe(0);
    counting.proxy.mend();
    expect(countWithheld(await Promise.all(times(300).map(() => guard(limiter, false))))).toBe(290);
  });

  itOnOneRedis("still answers hits", async () => {
    const limiter = await openLimiter(counting.newName(), { redisUrl: counting.proxy.url });
    counting.proxy.cut();
    const { guard } = lookUps();
    expect(countWithheld(await Promise.all(times(300).map(() => guard(limiter, true))))).toBe(0);
  });
});
