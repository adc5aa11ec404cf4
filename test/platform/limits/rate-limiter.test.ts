import { describe, expect, it } from "vitest";
import { type Allowance, RateLimiter } from "../../../src/platform/limits/rate-limiter.ts";
import { useCounting } from "../../support/counting.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { until } from "../../support/until.ts";

const LIMIT = 200;
/** Longer than a test. */
const LONG_S = 60;

const counting = useCounting();

const countAllowed = (verdicts: readonly Allowance[]) => verdicts.filter((verdict) => verdict.allowed).length;

it.each([
  1, 2, 19, 20, 200, 1_000,
])("a rate limiter lets exactly the first %i calls of a time window through, even at once", async (limit) => {
  const limiter = await openLimiter(counting.newName(), { limit });
  const verdicts = await Promise.all(Array.from({ length: 3 * limit + 5 }, () => limiter.take("caller")));
  expect([countAllowed(verdicts), countAllowed(verdicts.slice(0, limit))]).toEqual([limit, limit]);
  expect(await burst(limiter, 10)).toBe(0);
  expect(await burst(limiter, limit + 1, "another")).toBe(limit);
});

it("a rate limiter returns the remaining calls: one less for each call, 0 for a refusal", async () => {
  const limiter = await openLimiter(counting.newName(), { limit: 40 });
  const left: number[] = [];
  for (let i = 0; i < 42; i++) left.push((await limiter.take("caller")).remaining);
  expect(left).toEqual([...Array.from({ length: 40 }, (_, i) => 39 - i), 0, 0]);
});

/** By how many calls a process may be off in either direction: 7.5 % of the limit. */
const SLACK = 15;

it.each([
  2, 4,
])("rate limiters of %i processes keep one shared limit, with an error of at most a thirteenth", async (processes) => {
  const measure = async () => {
    const name = counting.newName();
    const limiters = await Promise.all(Array.from({ length: processes }, () => openLimiter(name)));
    const allowed = await Promise.all(limiters.map((limiter) => burst(limiter, 2 * LIMIT)));
    // `least` shows that each process gets its part of the limit.
    return { sum: allowed.reduce((total, one) => total + one, 0), least: Math.min(...allowed) };
  };
  // If Redis is late, as on a busy machine, a process counts alone for a while.
  await expectFairRound(3, measure, ({ sum, least }) => Math.abs(sum - LIMIT) <= processes * SLACK && least >= 10);
});

it("rate limiters of several processes keep one shared limit for sequential calls", async () => {
  const measure = async () => {
    const name = counting.newName();
    const limiters = [await openLimiter(name), await openLimiter(name)];
    let allowed = 0;
    for (let i = 0; i < 2 * LIMIT; i++) if ((await limiters[i % 2]?.take("caller"))?.allowed) allowed += 1;
    return allowed;
  };
  // If Redis is late, as on a busy machine, a process counts alone for a while.
  await expectFairRound(3, measure, (allowed) => Math.abs(allowed - LIMIT) <= 2 * SLACK);
});

it("after one process has used up a shared limit, others allow only calls that they were granted before", async () => {
  const measure = async () => {
    const name = counting.newName();
    const [first, second] = [await openLimiter(name), await openLimiter(name)];
    expect(await burst(first, LIMIT)).toBe(LIMIT);
    return burst(second, LIMIT);
  };
  // If Redis is late, as on a busy machine, a process counts alone for a while.
  await expectFairRound(3, measure, (allowed) => allowed <= SLACK);
});

it("a rate limiter makes no Redis call for occasional callers", async () => {
  const name = counting.newName();
  const limiter = await openLimiter(name);
  for (let caller = 0; caller < 100; caller++) {
    for (let call = 0; call < 4; call++)
      expect(await limiter.take(`caller ${caller}`)).toMatchObject({ allowed: true });
  }
  expect(await counting.monitor.count(`limit:${name}`)).toBe(0);
});

it("a rate limiter calls Redis at most 20 times for a window's calls, and never for a refused call", async () => {
  const name = counting.newName();
  const limiter = await openLimiter(name);
  for (let call = 0; call < LIMIT; call++) await limiter.take("caller");
  const asked = await counting.monitor.count(`limit:${name}`);
  expect(asked).toBeGreaterThan(0);
  // `asked` includes the commands of the Redis script: up to five for each call.
  expect(asked / 5).toBeLessThanOrEqual(20);
  for (let call = 0; call < 1_000; call++) expect((await limiter.take("caller")).allowed).toBe(false);
  expect(await counting.monitor.count(`limit:${name}`)).toBe(asked);
});

itOnOneRedis.each(["cut", "muffle"] as const)("each process keeps its rate limit without Redis: %s", async (fault) => {
  const options = { redisUrl: counting.proxy.url };
  const name = counting.newName();
  const limiters = [await openLimiter(name, options), await openLimiter(name, options)];
  counting.proxy[fault]();
  const onEach = (calls: number) => Promise.all(limiters.map((limiter) => burst(limiter, calls)));
  expect(await onEach(3 * LIMIT)).toEqual([LIMIT, LIMIT]);
  expect(await onEach(50)).toEqual([0, 0]);
});

itOnOneRedis("a rate limiter keeps its count of calls when Redis fails, and when Redis returns", async () => {
  const name = counting.newName();
  const limiter = await openLimiter(name, { redisUrl: counting.proxy.url });
  expect(await burst(limiter, 100)).toBe(100);
  counting.proxy.cut();
  expect(await burst(limiter, 50)).toBe(50);
  counting.proxy.mend();
  let probes = 0;
  await until(async () => {
    await burst(limiter, 20, `probe ${++probes}`);
    return counting.servers.redis.exists(`limit:${name}:probe ${probes}`);
  });
  expect(await burst(limiter, 3 * LIMIT)).toBe(50);
});

it("a rate limiter's memory is bounded, however many addresses call", async () => {
  const limiter = await openLimiter();
  for (let address = 0; address < 200_000; address++) void limiter.take(`2001:db8:${address}::/64`);
  expect(limiter.size).toBeLessThanOrEqual(10_000);
  expect(await burst(limiter, 3 * LIMIT)).toBe(LIMIT);
});

// Each of these tests waits for the end of its own window.
describe.concurrent("a rate limiter whose window ends", () => {
  it("a rate limiter says when its window ends, then leaves nothing in Redis and admits the caller", async () => {
    const name = counting.newName();
    const limiter = await openLimiter(name, { limit: 3, seconds: 1 });
    await until(async () => (await burst(limiter, 5)) < 5);
    const { resetMs } = await limiter.take("caller");
    expect(resetMs).toBeGreaterThanOrEqual(0);
    expect(resetMs).toBeLessThanOrEqual(1_000);
    expect(await counting.servers.redis.pttl(`limit:${name}:caller`)).toBeLessThanOrEqual(1_000);
    await until(async () => (await counting.servers.redis.exists(`limit:${name}:caller`)) === 0);
    await until(async () => (await limiter.take("caller")).allowed);
  });
});

async function openLimiter(name = counting.newName(), { limit = LIMIT, seconds = LONG_S, redisUrl = "" } = {}) {
  const openCounter = await counting.openCounts(redisUrl || undefined);
  return new RateLimiter(name, limit, openCounter(name, seconds));
}

/** Makes concurrent calls, and returns the number of allowed ones. */
async function burst(limiter: RateLimiter, calls: number, id = "caller"): Promise<number> {
  return countAllowed(await Promise.all(Array.from({ length: calls }, () => limiter.take(id))));
}
