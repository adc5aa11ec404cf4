import { setTimeout as sleep } from "node:timers/promises";
import { it } from "vitest";
import { expectFairRound } from "../../support/fair-rounds.ts";
import { issueVouchers } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { api, servers, partner, keys } = useService({ workers: [] });

/** How long the test measures the process while calls wait. Milliseconds. */
const WATCHED_MS = 5_000;

const read = async (query: Record<string, string>) => {
  const address = `${api.url}/partner/events?${new URLSearchParams(query)}`;
  return (await fetch(address, { headers: { "x-api-key": keys.till.key } })).json();
};

it("a partner reads a day of 100 000 events from the feed in less than 30 seconds", async () => {
  await issueVouchers(servers.db, partner, 100_000);
  await servers.db.query("ANALYZE");
  const measure = async () => {
    const startedAt = performance.now();
    const seen = new Set<string>();
    for (let page = await read({}); page.events.length > 0; page = await read({ after: page.nextCursor }))
      for (const { entityId } of page.events) seen.add(entityId);
    return { seen: seen.size, ms: performance.now() - startedAt };
  };
  await expectFairRound(3, measure, ({ seen, ms }) => seen === 100_000 && ms < 30_000);
});

it("a thousand calls that wait for new events take less than 2 % of a core, and no connection", async () => {
  const idle = await cpuShare();
  const measure = async () => {
    const { nextCursor: after } = await read({ after: "now" });
    const waiting = Array.from({ length: 1_000 }, () => read({ after, wait: "20" }));
    await until(() => api.ctx.eventFeed.waiting === 1_000);
    const before = api.ctx.pool.totalCount - api.ctx.pool.idleCount;
    const share = (await cpuShare()) - idle;
    await issueVouchers(servers.db, partner, 1);
    const woken = (await Promise.all(waiting)).filter(({ events }) => events.length === 1).length;
    return { share, before, woken };
  };
  await expectFairRound(3, measure, ({ share, before, woken }) => share < 0.02 && before <= 1 && woken === 1_000);
});

/** Measures the share of one core that this process uses. */
async function cpuShare(): Promise<number> {
  const before = process.cpuUsage();
  const startedAt = performance.now();
  await sleep(WATCHED_MS);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / (performance.now() - startedAt);
}
