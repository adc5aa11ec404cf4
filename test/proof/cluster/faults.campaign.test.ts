import { beforeEach, expect, it } from "vitest";
import { slotOf } from "../../../src/platform/redis/slots.ts";
import type { TestApi } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { type Load, longestGap, SHARDS, shardsOn, since, slotOfShard, startLoad, useCluster } from "./load.ts";

const own = useCluster({ apis: 2, workers: 2 });

beforeEach(() => own.cluster.heal());

/** The documented maximum time from a master's crash until the full rate is back. Milliseconds. */
const RECOVERED_MS = 10_000;
/** The part of that time in which Redis detects the crash and votes. Milliseconds. */
const FAILOVER_MS = 4_000;
/** Extra time for a busy machine. Milliseconds. */
const PATIENT_MS = 60_000;

/** A busy machine may delay Redis's vote. The service still has the rest of the ten seconds. */
const gapMaxOf = ({ killedAt, promotedAt }: { killedAt: number; promotedAt: number }) =>
  RECOVERED_MS + Math.max(0, promotedAt - killedAt - FAILOVER_MS);

/**
 * Kills the master of a slot. Returns the time of the kill, and the time when another node had its slots. Milliseconds.
 */
async function failOver(slot: number): Promise<{ killedAt: number; promotedAt: number }> {
  const master = await own.cluster.masterOf(slot);
  const killedAt = Date.now();
  await master.kill();
  await until(async () => (await own.cluster.masterOf(slot)) !== master, PATIENT_MS);
  return { killedAt, promotedAt: Date.now() };
}

/** Waits until each API has redeemed a voucher in each of these shards, in calls that began after a moment. */
async function untilRedeemed(answers: Load["answers"], shards: readonly number[], from: number): Promise<void> {
  await until(() => {
    const confirmed = since(answers, from).filter(({ status }) => status === 200);
    const done = new Set(confirmed.map(({ shard, till }) => `${shard} ${till}`));
    return shards.every((shard) => own.tills.every((_, till) => done.has(`${shard} ${till}`)));
  }, PATIENT_MS);
}

it("killing a master under load stops its shards for at most ten seconds, and no other shards", async () => {
  const slot = slotOfShard(own.servers, 0);
  const lost = await shardsOn(own, await own.cluster.masterOf(slot));
  expect(lost).toHaveLength(SHARDS / 3);
  const load = await startLoad(own.servers, own.partner, own.tills);
  await until(() => load.answers.length > 300, PATIENT_MS);
  const { killedAt, promotedAt } = await failOver(slot);
  await untilRedeemed(load.answers, lost, promotedAt);
  const recoveredAt = Math.max(Date.now(), killedAt + RECOVERED_MS);
  const late = () => since(load.answers, recoveredAt);
  await until(() => late().length > 200, PATIENT_MS);
  await load.end();
  const gapMax = gapMaxOf({ killedAt, promotedAt });
  for (const shard of lost) expect(longestGap(load.answers, shard, killedAt)).toBeLessThan(gapMax);
  expect(load.answers.filter(({ shard, status }) => !lost.includes(shard) && status !== 200)).toEqual([]);
  expect(late().filter(({ status }) => status !== 200)).toEqual([]);
});

it("killing the master with the replies' channel delays replies, but causes no 503 in other shards", async () => {
  const [api] = own.apis as [TestApi];
  const slot = slotOf(api.ctx.redeemQueue.replyChannel);
  const lost = await shardsOn(own, await own.cluster.masterOf(slot));
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => !lost.includes(shard));
  const load = await startLoad(own.servers, own.partner, own.tills.slice(0, 1), { shards });
  await until(() => load.answers.length > 100, PATIENT_MS);
  const { killedAt, promotedAt } = await failOver(slot);
  const tookMs = (from: number) => since(load.answers, from).map(({ sentAt, answeredAt }) => answeredAt - sentAt);
  // A call without a reply waits for the recheck, a second or two.
  await until(() => tookMs(promotedAt).some((ms) => ms < 900), PATIENT_MS);
  expect(Date.now() - killedAt).toBeLessThan(gapMaxOf({ killedAt, promotedAt }));
  const repliedAt = Math.max(Date.now(), killedAt + RECOVERED_MS);
  await until(() => tookMs(repliedAt).length > 50, PATIENT_MS);
  await load.end();
  expect(load.answers.filter(({ status }) => status !== 200)).toEqual([]);
  const late = tookMs(repliedAt).toSorted((one, other) => one - other);
  // Replies arrive again, so no call waits for the recheck.
  expect(late[Math.floor(late.length / 2)]).toBeLessThan(900);
});

/**
 * The number of calls from which a rate of one in a thousand can be judged, if three are refused for each of two moves.
 */
const JUDGED_MAX = 6_000;

it("moving slots under load fails at most one call in a thousand, and loses nothing", async () => {
  const { cluster, servers } = own;
  const load = await startLoad(servers, own.partner, own.tills);
  const refused = () => load.answers.filter(({ status }) => status !== 200).length;
  await until(() => load.answers.length > 500, PATIENT_MS);
  const slot = slotOfShard(servers, 1);
  const [from, to] = [await cluster.masterOf(slot), await cluster.masterOf(slotOfShard(servers, 4))];
  expect(from).not.toBe(to);
  const slots = Array.from({ length: 40 }, (_, n) => slot - 20 + n);
  await cluster.moveSlots(slots, to);
  expect(await cluster.masterOf(slot)).toBe(to);
  const movedAt = Date.now();
  await until(() => load.answers.length > 3_000, 120_000);
  await cluster.moveSlots(slots, from);
  const movedBackAt = Date.now();
  // A few refusals at once are more than one in a thousand of the calls so far, so the load continues.
  const wanted = () => Math.min(refused() * 1_000, JUDGED_MAX);
  const isJudged = () => load.openSince() > movedBackAt && load.answers.length >= wanted();
  await until(() => since(load.answers, movedBackAt).length > 100 && isJudged(), 240_000);
  await load.end();
  expect(refused()).toBeLessThanOrEqual(load.answers.length / 1_000);
  expect(since(load.answers, movedAt).some(({ shard, status }) => shard === 1 && status === 200)).toBe(true);
}, 400_000);
