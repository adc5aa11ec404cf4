import { createRequire } from "node:module";
import { expect, it } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { findShard, listShards, SHARDS_MAX, shardOf } from "../../../src/platform/queues/shards.ts";
import { slotOf } from "../../../src/platform/redis/slots.ts";

/** Computes a key's slot with the library that ioredis uses. */
const librarySlot: (key: string) => number = createRequire(import.meta.url)("cluster-key-slot");

it("the computed slot of a hash tag equals Redis Cluster's slot", () => {
  // In the specification of Redis Cluster, the CRC-16 of 123456789 is 0x31c3.
  expect(slotOf("123456789")).toBe(0x31c3 % 16_384);
  for (let n = 0; n < 200; n++) expect(slotOf(`tag:${n}:ü`)).toBe(librarySlot(`{tag:${n}:ü}`));
});

it("a deployment has one shard of its queues by default, whose keys contain no shard number", () => {
  expect(listShards("dep_1", 1)).toEqual([{ index: 0, count: 1, name: "0/1", prefix: "{pva:dep_1}" }]);
});

it.each([
  2,
  3,
  6,
  12,
  SHARDS_MAX,
])("the %i shards of a queue are spread evenly over the slots of Redis Cluster", (count) => {
  const places = listShards("dep_1", count).map(
    ({ prefix }) => (librarySlot(`${prefix}:redeem:wait`) * count) / 16_384,
  );
  expect(places.map(Math.floor)).toEqual(places.map((_, index) => index));
});

it("shards of another deployment or of another number of shards have other key prefixes", () => {
  const prefixes = ["dep_1", "dep_2"].flatMap((id) =>
    [1, 2, 4, 6].flatMap((count) => listShards(id, count).map(({ prefix }) => prefix)),
  );
  expect(new Set(prefixes).size).toBe(prefixes.length);
});

it("a deployment's shards have the same keys in every process and release", () => {
  expect(findShard("dep_1", 2, 6).prefix).toBe("{pva:dep_1:2/6:11}");
  expect(shardOf("vch_01h455vb4pex5vsknk084sn02q", 6)).toBe(0);
});

it("vouchers are spread evenly over the shards of a queue", () => {
  const counts = Array.from({ length: 6 }, () => 0);
  for (let n = 0; n < 6_000; n++) {
    const shard = shardOf(newId("vch"), 6);
    counts[shard] = (counts[shard] ?? 0) + 1;
  }
  // Six standard deviations.
  for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(175);
});

it("computing the queue names of a deployment's 256 shards takes less than 20 ms of CPU time", () => {
  const find = () => {
    const before = process.threadCpuUsage();
    listShards(`dep_${crypto.randomUUID()}`, SHARDS_MAX);
    const { user, system } = process.threadCpuUsage(before);
    return user + system;
  };
  // The first run compiles the code. The fastest of the other runs counts, because a core may be slow at times.
  find();
  expect(Math.min(find(), find(), find())).toBeLessThan(20_000);
});
