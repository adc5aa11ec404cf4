import { expect, it } from "vitest";
import { GroupCommitter, type Undecided } from "../../../src/core/commit/group-committer.ts";
import { BatcherClosed } from "../../../src/platform/batching/batcher.ts";
import { until } from "../../support/until.ts";

it("while one owner waits for locked rows, places and a connection stay free for another owner who waits", async () => {
  const { committer, waiting, free } = startCommitter();
  let busy = 0;
  const crowd = Array.from({ length: 64 }, async (_, n) => {
    const result = await committer.submit({ owner: "crowd", row: `row ${n}` });
    if (result === 0) busy += 1;
    return result;
  });
  // A quarter of 64 places, and three quarters of these for one owner.
  await until(() => busy === 64 - 12 && waiting.length >= 3);
  expect(waiting).toEqual(["crowd", "crowd", "crowd"]);
  const neighbour = committer.submit({ owner: "neighbour", row: "another row" });
  await until(() => waiting.length === 4);
  expect(waiting.at(-1)).toBe("neighbour");
  free();
  expect(await neighbour).toBe(1);
  expect((await Promise.all(crowd)).filter((result) => result === 1)).toHaveLength(12);
});

it("a closed committer accepts no item, and its close ends when all accepted items are decided", async () => {
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

interface Item {
  owner: string;
  row: string;
}

/** A group committer of a worker with 64 jobs, whose rows are all locked until the test frees them. */
function startCommitter() {
  /** Owners whose items wait for a lock on a connection. */
  const waiting: string[] = [];
  const freed = Promise.withResolvers<void>();
  const committer = new GroupCommitter<Item, number>({
    async commit(items, waitMs): Promise<(number | Undecided)[]> {
      if (waitMs === null) return items.map(() => "locked");
      waiting.push(...new Set(items.map(({ owner }) => owner)));
      await freed.promise;
      return items.map(() => 1);
    },
    groupOf: ({ row }) => row,
    ownerOf: ({ owner }) => owner,
    busy: 0,
    observer: { submitted: () => undefined, run: (_items, work) => work() },
    lockWaitMs: 60_000,
    waitingMax: 64,
    isBounded: true,
    slowConnections: 4,
  });
  return { committer, waiting, free: () => freed.resolve() };
}
