import { expect, it } from "vitest";
import { Shares, splitInTurns } from "../../../src/platform/batching/shares.ts";
import { waitingMaxOfShard } from "../../../src/platform/queues/queue-settings.ts";

it("Shares lets one owner use three quarters of the capacity, and each further owner a part of the rest", () => {
  const shares = new Shares(400);
  expect(["a", "b", "c", "d"].map((owner) => fill(shares, owner))).toEqual([300, 75, 19, 5]);
  shares.release("a");
  expect(shares.hasRoom("a")).toBe(false);
  expect(shares.hasRoom("e")).toBe(true);
});

it("an owner that has released its part of Shares can take as much again", () => {
  const shares = new Shares(8);
  expect(fill(shares, "a")).toBe(6);
  for (let n = 0; n < 6; n++) shares.release("a");
  expect(shares.used).toBe(0);
  expect(fill(shares, "a")).toBe(6);
});

const items = (owners: string) => [...owners].map((owner, at) => ({ owner, at }));
const ownersOf = (split: readonly { owner: string }[]) => split.map(({ owner }) => owner).join("");

it.each([
  { owners: "aaaaaabaac", max: 4, taken: "aabc", left: "aaaaaa" },
  { owners: "aaaabbbb", max: 4, taken: "aabb", left: "aabb" },
  { owners: "aaaabbbb", max: 3, taken: "aab", left: "aabbb" },
  { owners: "abcdef", max: 2, taken: "ab", left: "cdef" },
  { owners: "aab", max: 3, taken: "aab", left: "" },
  { owners: "aab", max: 5, taken: "aab", left: "" },
  { owners: "aaaaa", max: 2, taken: "aa", left: "aaa" },
])("splitInTurns takes $max of the items of the owners $owners in round-robin order", ({
  owners,
  max,
  taken,
  left,
}) => {
  const [first, others] = splitInTurns(items(owners), max);
  expect([ownersOf(first), ownersOf(others)]).toEqual([taken, left]);
  for (const part of [first, others]) expect(part).toEqual(part.toSorted((a, b) => a.at - b.at));
});

it("a shard's maximum of waiting jobs is a fraction of the queue's, but enough for a burst", () => {
  const sharesOf = (waitingMax: number) => [1, 6, 256].map((shards) => waitingMaxOfShard({ waitingMax }, shards));
  expect(sharesOf(10_000)).toEqual([10_000, 1_667, 500]);
  expect(sharesOf(1)).toEqual([1, 1, 1]);
});

/** Takes places for the owner while the owner may have more. Returns how many were taken. */
function fill(shares: Shares, owner: string): number {
  let taken = 0;
  for (; shares.hasRoom(owner); taken += 1) shares.take(owner);
  return taken;
}
