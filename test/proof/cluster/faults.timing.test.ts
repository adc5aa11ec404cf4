import { expect, it } from "vitest";
import { slotOf } from "../../../src/platform/redis/slots.ts";
import { expectFairRound } from "../../support/fair-rounds.ts";
import type { TestApi } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { longestGap, SHARDS, shardsOn, since, slotOfShard, startLoad, useCluster } from "./load.ts";

const own = useCluster({ apis: 2, workers: 2 });

/** The documented maximum time from a master's crash until the full rate is back. Milliseconds. */
const RECOVERED_MS = 10_000;
/** The part of the recovery in which Redis detects the crash and votes. A busy machine needs longer. Milliseconds. */
const FAILOVER_MS = 4_000;
/** A busy machine may delay the calls of some rounds, but a stopped shard would delay them in each. */
const ROUNDS_MAX = 3;

const isRefused = ({ status }: { status: number }) => status !== 200;

/**
 * Kills the master of a slot. Returns the times of the kill and of the replica's promotion, how long the service may
 * need in this round until the full rate is back, and when that time ends. Milliseconds.
 */
async function failOver(slot: number) {
  const master = await own.cluster.masterOf(slot);
  const killedAt = Date.now();
  await master.kill();
  await until(async () => (await own.cluster.masterOf(slot)) !== master);
  const promotedAt = Date.now();
  const gapMax = RECOVERED_MS + Math.max(0, promotedAt - killedAt - FAILOVER_MS);
  return { killedAt, promotedAt, gapMax, recoveredAt: killedAt + gapMax };
}

/**
 * Kills the master of some shards. Returns by how much their longest time without a redemption exceeds the limit, and
 * refusals that must not happen.
 */
async function killMaster() {
  await own.cluster.heal();
  const slot = slotOfShard(own.servers, 0);
  const lost = await shardsOn(own, await own.cluster.masterOf(slot));
  expect(lost).toHaveLength(SHARDS / 3);
  const load = await startLoad(own.servers, own.partner, own.tills);
  await until(() => load.answers.length > 300);
  const { killedAt, gapMax, recoveredAt } = await failOver(slot);
  const late = () => since(load.answers, recoveredAt);
  await until(() => late().length > 200);
  await load.end();
  const tooLongMs = Math.max(...lost.map((shard) => longestGap(load.answers, shard, killedAt))) - gapMax;
  const ofOthers = load.answers.filter((one) => !lost.includes(one.shard) && isRefused(one));
  return { tooLongMs, wrong: [...ofOthers, ...late().filter(isRefused)] };
}

it("ten seconds after a Redis master is killed, its shards redeem again, and other shards refuse nothing", async () => {
  await expectFairRound(ROUNDS_MAX, killMaster, ({ tooLongMs, wrong }) => tooLongMs < 0 && wrong.length === 0);
});

/**
 * Kills the master that publishes the replies. Returns by how much the delay of replies exceeds the limit, all
 * refusals, and how long calls take.
 */
async function killReplies() {
  await own.cluster.heal();
  const [api] = own.apis as [TestApi];
  const slot = slotOf(api.ctx.redeemQueue.replyChannel);
  const lost = await shardsOn(own, await own.cluster.masterOf(slot));
  const shards = Array.from({ length: SHARDS }, (_, shard) => shard).filter((shard) => !lost.includes(shard));
  const load = await startLoad(own.servers, own.partner, own.tills.slice(0, 1), { shards });
  await until(() => load.answers.length > 100);
  const { promotedAt, recoveredAt } = await failOver(slot);
  const tookMs = (from: number) => since(load.answers, from).map(({ sentAt, answeredAt }) => answeredAt - sentAt);
  // Waits until a reply arrives at once. A call whose reply is lost reads the job's result after one or two seconds.
  await until(() => tookMs(promotedAt).some((ms) => ms < 900));
  const tooLongMs = Date.now() - recoveredAt;
  await until(() => tookMs(recoveredAt).length > 50);
  await load.end();
  const late = tookMs(recoveredAt).toSorted((one, other) => one - other);
  return { tooLongMs, wrong: load.answers.filter(isRefused), medianMs: late[Math.floor(late.length / 2)] ?? Infinity };
}

it("killing the Redis master that carries replies delays replies, but causes no 503 in other shards", async () => {
  await expectFairRound(
    ROUNDS_MAX,
    killReplies,
    // Replies arrive again, so that no call has to read the job's result.
    ({ tooLongMs, wrong, medianMs }) => tooLongMs < 0 && wrong.length === 0 && medianMs < 900,
  );
});

/** Minimum number of calls from which the test computes the rate of refusals. */
const JUDGED = 6_000;

/** Moves the slots around a shard's slot to another master and back under load. Returns refusals per thousand calls. */
async function moveSlots() {
  const { cluster, servers } = own;
  await cluster.heal();
  const load = await startLoad(servers, own.partner, own.tills);
  await until(() => load.answers.length > 500);
  const slot = slotOfShard(servers, 1);
  const [from, to] = [await cluster.masterOf(slot), await cluster.masterOf(slotOfShard(servers, 4))];
  expect(from).not.toBe(to);
  const slots = Array.from({ length: 40 }, (_, n) => slot - 20 + n);
  await cluster.moveSlots(slots, to);
  expect(await cluster.masterOf(slot)).toBe(to);
  const movedAt = Date.now();
  await until(() => load.answers.length > JUDGED / 2);
  await cluster.moveSlots(slots, from);
  await until(() => load.answers.length > JUDGED);
  await load.end();
  const confirmed = since(load.answers, movedAt).filter(({ status }) => status === 200);
  expect(new Set(confirmed.map(({ shard }) => shard)).size).toBe(SHARDS);
  return (load.answers.filter(isRefused).length / load.answers.length) * 1_000;
}

it("moving Redis Cluster slots under load refuses at most one call in a thousand, and loses nothing", async () => {
  await expectFairRound(ROUNDS_MAX, moveSlots, (thousandths) => thousandths <= 1);
});
