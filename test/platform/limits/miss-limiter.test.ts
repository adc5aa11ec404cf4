import { expect, it } from "vitest";
import { MissLimiter } from "../../../src/platform/limits/miss-limiter.ts";
import { useCounting } from "../../support/counting.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { until } from "../../support/until.ts";

const LIMIT = 60;

const counting = useCounting();
const times = (count: number) => Array.from({ length: count }, (_, index) => index);

it.each([
  1, 5, 16, 60,
])("MissLimiter answers only a caller's first %i unknown codes, even simultaneous ones", async (limit) => {
  const { seen, guard, burst, misses } = await open(counting.newName(), { limit });
  expect(await burst(500, () => false)).toEqual(times(500).map((n) => n < limit));
  const { ran } = seen;
  for (const hit of [true, false]) {
    expect(await guard(hit)).toEqual({ allowed: false, resetMs: expect.any(Number) });
  }
  // No further look-up is made.
  expect(seen.ran).toBe(ran);
  expect(await misses(limit + 1, "another")).toBe(limit);
});

it("MissLimiter withholds a found code that comes after the last permitted unknown code", async () => {
  const { burst } = await open(counting.newName(), { limit: 10 });
  // The tenth miss is the twelfth look-up. Two of the hits come before it, and one after it.
  expect(await burst(100, (n) => [3, 9, 50].includes(n))).toEqual(times(100).map((n) => n < 12));
});

it("MissLimiter answers any number of simultaneous found codes without a Redis call", async () => {
  const name = counting.newName();
  const { seen, guard, burst, misses } = await open(name, { limit: 3 });
  const hits = times(2_000).map(() => guard(true));
  expect(seen.ran).toBe(2_000);
  expect(await Promise.all(hits)).toEqual(times(2_000).map(() => ({ allowed: true, result: true })));
  expect(await counting.monitor.count(`limit:${name}`)).toBe(0);
  expect(await misses(2)).toBe(2);
  expect(await burst(200, () => true)).not.toContain(false);
});

it("MissLimiter counts every unknown code in Redis, and makes no Redis call after the limit", async () => {
  const name = counting.newName();
  const { misses } = await open(name);
  await misses(500);
  expect(await counting.servers.redis.get(`limit:${name}:caller`)).toBe("500");
  const asked = await counting.monitor.count(`limit:${name}`);
  expect(await misses(500)).toBe(0);
  expect(await counting.monitor.count(`limit:${name}`)).toBe(asked);
});

it("MissLimiter counts a failed look-up neither as found nor as unknown", async () => {
  const { limiter, guard, misses } = await open(counting.newName(), { limit: 1 });
  const failing = () =>
    limiter.guard(
      "caller",
      () => Promise.reject(new Error("no database")),
      () => true,
    );
  for (let i = 0; i < 20; i++) await expect(failing()).rejects.toThrow("no database");
  expect(await guard(true)).toEqual({ allowed: true, result: true });
  expect(await misses(5)).toBe(1);
});

it("MissLimiter refuses until its time window ends, says when that is, and then allows calls again", async () => {
  const { guard, misses } = await open(counting.newName(), { limit: 2, seconds: 1 });
  await until(async () => (await misses(10)) < 10);
  const refused = await guard(false);
  if (!refused.allowed) expect(refused.resetMs).toBeLessThanOrEqual(1_000);
  await until(async () => (await guard(true)).allowed);
});

it.each([
  2, 4,
])("MissLimiter allows the same number of unknown codes at %i processes as at one process", async (processes) => {
  const measure = async () => {
    const name = counting.newName();
    const limiters = await Promise.all(times(processes).map(() => open(name)));
    const answered = await Promise.all(limiters.map(({ misses }) => misses(300)));
    const later = await Promise.all(limiters.map(({ guard }) => guard(true)));
    return { sum: answered.reduce((sum, count) => sum + count, 0), later: later.filter(({ allowed }) => allowed) };
  };
  // If Redis is late, as on a busy machine, a process counts alone for a while.
  await expectFairRound(3, measure, ({ sum, later }) => sum === LIMIT && later.length === 0);
});

it("a process counts a caller's unknown codes in other processes from its own first unknown code on", async () => {
  const measure = async () => {
    const name = counting.newName();
    const [one, other] = [await open(name), await open(name)];
    await one.misses(300);
    return other.burst(100, (n) => n !== 5);
  };
  // If Redis is late, as on a busy machine, a process counts alone for a while.
  await expectFairRound(3, measure, (answered) => answered.every((allowed, n) => allowed === n < 5));
});

itOnOneRedis.each(["cut", "muffle"] as const)(
  "without Redis, each process applies the limit of unknown codes by itself: %s",
  async (fault) => {
    const options = { redisUrl: counting.proxy.url };
    const name = counting.newName();
    const limiters = [await open(name, options), await open(name, options)];
    counting.proxy[fault]();
    const tryOut = async ({ guard, burst, misses }: (typeof limiters)[number]) => {
      expect(await burst(300, () => true)).not.toContain(false);
      expect(await misses(300)).toBe(LIMIT);
      expect((await guard(true)).allowed).toBe(false);
    };
    await Promise.all(limiters.map(tryOut));
  },
);

itOnOneRedis("MissLimiter keeps its count of unknown codes when Redis fails, and when Redis returns", async () => {
  const { misses } = await open(counting.newName(), { redisUrl: counting.proxy.url });
  expect(await misses(30)).toBe(30);
  counting.proxy.cut();
  expect(await misses(20)).toBe(20);
  counting.proxy.mend();
  expect(await misses(300)).toBe(10);
});

/** Opens a limiter with its own connection, as in each process, and look-ups that count their runs. */
async function open(name = counting.newName(), { limit = LIMIT, seconds = 60, redisUrl = "" } = {}) {
  const openCounter = await counting.openCounts(redisUrl || undefined);
  const limiter = new MissLimiter(limit, openCounter(name, seconds));
  const seen = { ran: 0 };
  const lookUp = async (hit: boolean): Promise<boolean> => {
    seen.ran += 1;
    await new Promise((resolve) => setImmediate(resolve));
    return hit;
  };
  const guard = (hit: boolean, id = "caller") =>
    limiter.guard(
      id,
      () => lookUp(hit),
      (found) => !found,
    );
  /** Makes concurrent look-ups, with hits at some positions, and returns whether each is answered. */
  const burst = async (count: number, isHit: (n: number) => boolean, id?: string) =>
    (await Promise.all(times(count).map((n) => guard(isHit(n), id)))).map(({ allowed }) => allowed);
  /** Makes concurrent misses, and returns the number of answered ones. */
  const misses = async (count: number, id?: string) =>
    (await burst(count, () => false, id)).filter((allowed) => allowed).length;
  return { limiter, seen, guard, burst, misses };
}
