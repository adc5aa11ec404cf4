import { expect, it } from "vitest";
import { GroupCommitter, type Undecided } from "../../../src/core/commit/group-committer.ts";
import { BatcherClosed } from "../../../src/platform/batching/batcher.ts";
import { until } from "../../support/until.ts";

it("two owners' jobs can start while a third owner's jobs wait for locked rows", async () => {
  const { committer, waiting, free } = startCommitter();
  let busy = 0;
  const crowd = Array.from({ length: 64 }, async (_, n) => {
    const result = await committer.submit({ owner: "crowd", row: `row ${n}` });
    if (result === 0) busy += 1;
    return result;
  });
  // At most a quarter of the 64 jobs (16) may wait for locks, and one owner may have three quarters of these (12).
  await until(() => busy === 64 - 12 && waiting.length >= 2);
  expect(waiting).toEqual(["crowd", "crowd"]);
  const neighbours = ["neighbour", "newcomer"].map((owner) => committer.submit({ owner, row: `row of ${owner}` }));
  await until(() => waiting.length === 4);
  expect(waiting.slice(2).toSorted()).toEqual(["neighbour", "newcomer"]);
  free();
  expect(await Promise.all(neighbours)).toEqual([1, 1]);
  expect((await Promise.all(crowd)).filter((result) => result === 1)).toHaveLength(12);
});

it("a closing group committer accepts no item, and closes after it has decided all accepted items", async () => {
  const { committer, waiting, free } = startCommitter();
  const accepted = committer.submit({ owner: "one", row: "a row" });
  const closed = committer.close().then(() => "closed");
  await expect(committer.submit({ owner: "one", row: "another row" })).rejects.toBeInstanceOf(BatcherClosed);
  await until(() => waiting.length === 1);
  expect(await Promise.race([closed, Promise.resolve("open")])).toBe("open");
  free();
  expect(await accepted).toBe(1);
  expect(await closed).toBe("closed");
});

it("a group committer pauses for 20 ms between two attempts that do not wait for a locked row", async () => {
  const attempts: number[] = [];
  const committer = openCommitter(async (items, waitMs) => {
    if (waitMs !== null) attempts.push(performance.now());
    return items.map(() => (attempts.length < 11 ? "locked" : 1));
  });
  expect(await committer.submit({ owner: "one", row: "a row" })).toBe(1);
  const [first = 0, last = 0] = [attempts[0], attempts.at(-1)];
  // Between the first and the last attempt are ten pauses of 20 ms. Timers may fire two milliseconds early.
  expect(last - first).toBeGreaterThan(180);
});

it("a group committer returns busy for an item whose row stays locked for the longest wait", async () => {
  const committer = openCommitter(async (items) => items.map(() => "locked"), { lockWaitMs: 400 });
  expect(await committer.submit({ owner: "one", row: "a row" })).toBe(0);
});

interface Item {
  owner: string;
  row: string;
}

/** Starts a group committer whose rows stay locked until the test unlocks them. */
function startCommitter() {
  /** The owners of items that wait for a lock on a connection. */
  const waiting: string[] = [];
  const freed = Promise.withResolvers<void>();
  const committer = openCommitter(async (items, waitMs) => {
    if (waitMs === null) return items.map(() => "locked");
    waiting.push(...new Set(items.map(({ owner }) => owner)));
    await freed.promise;
    return items.map(() => 1);
  });
  return { committer, waiting, free: () => freed.resolve() };
}

/** Opens a group committer of a worker with 64 jobs. */
function openCommitter(
  commit: (items: Item[], waitMs: number | null) => Promise<(number | Undecided)[]>,
  { lockWaitMs } = { lockWaitMs: 60_000 },
) {
  return new GroupCommitter<Item, number>({
    commit,
    groupOf: ({ row }) => row,
    ownerOf: ({ owner }) => owner,
    busy: 0,
    observer: { submitted: () => undefined, run: (_items, work) => work() },
    lockWaitMs,
    waitingMax: 64,
    isBounded: true,
    slowConnections: 4,
  });
}
