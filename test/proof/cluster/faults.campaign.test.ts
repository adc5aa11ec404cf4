import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, it } from "vitest";
import { slotOf } from "../../../src/platform/redis/slots.ts";
import type { TestApi } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { longestGap, SHARDS, shardsOn, since, slotOfShard, startLoad, useCluster } from "./load.ts";

const own = useCluster({ apis: 2, workers: 2 });

beforeEach(() => own.cluster.heal());

it("a master that is killed under load costs its shards at most ten seconds, and the others nothing", async () => {
  const master = await own.cluster.masterOf(slotOfShard(own.servers, 0));
  const lost = await shardsOn(own, master);
  expect(lost).toHaveLength(SHARDS / 3);
  const load = await startLoad(own.servers, own.partner, own.tills);
  await until(() => load.answers.length > 300);
  const killedAt = Date.now();
  await master.kill();
  await sleep(14_000);
  await load.end();
  for (const shard of lost) expect(longestGap(load.answers, shard, killedAt)).toBeLessThan(10_000);
  expect(load.answers.filter(({ shard, status }) => !lost.includes(shard) && status !== 200)).toEqual([]);
  const late = since(load.answers, killedAt + 10_000);
  expect(late.filter(({ status }) => status !== 200)).toEqual([]);
  expect(late.length).toBeGreaterThan(100);
});

it("a killed master that carries the channel of replies delays them, and costs other shards no 503", async () => {
  const [api] = own.apis as [TestApi];
  const master = await own.cluster.masterOf(slotOf(api.ctx.redeemQueue.replyChannel));
  const lost = await shardsOn(own, master);
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => !lost.includes(shard));
  const load = await startLoad(own.servers, own.partner, own.tills.slice(0, 1), { shards });
  await until(() => load.answers.length > 100);
  const killedAt = Date.now();
  await master.kill();
  await sleep(12_000);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  const late = since(load.answers, killedAt + 10_000).map(({ sentAt, answeredAt }) => answeredAt - sentAt);
  // Replies arrive again, so that no call waits for the recheck.
  expect(late.length).toBeGreaterThan(20);
  expect(late.toSorted((one, other) => one - other)[Math.floor(late.length / 2)]).toBeLessThan(900);
});

it("slots that move under load cost at most one call in a thousand, and nothing is lost", async () => {
  const { cluster, servers } = own;
  const load = await startLoad(servers, own.partner, own.tills);
  await until(() => load.answers.length > 500);
  const slot = slotOfShard(servers, 1);
  const [from, to] = [await cluster.masterOf(slot), await cluster.masterOf(slotOfShard(servers, 4))];
  expect(from).not.toBe(to);
  const slots = Array.from({ length: 40 }, (_, n) => slot - 20 + n);
  await cluster.moveSlots(slots, to);
  expect(await cluster.masterOf(slot)).toBe(to);
  const movedAt = Date.now();
  await until(() => load.answers.length > 3_000, 90_000);
  await cluster.moveSlots(slots, from);
  await sleep(2_000);
  await load.end();
  const refused = load.answers.filter(({ status }) => status !== 200);
  expect(refused.length).toBeLessThanOrEqual(load.answers.length / 1_000);
  expect(since(load.answers, movedAt).some(({ shard, status }) => shard === 1 && status === 200)).toBe(true);
});
