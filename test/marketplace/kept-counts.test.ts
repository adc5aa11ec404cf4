import type pg from "pg";
import { expect, it } from "vitest";
import { KeptCounts } from "../../src/marketplace/kept-counts.ts";

/** Makes a cache of counts. Its statements wait for `held`. `statements` lists the batches that each one counted. */
function openCounts() {
  const statements: string[][] = [];
  const pool = {
    held: Promise.resolve(),
    query: async ({ values: [batchIds] }: { values: [string[]] }) => {
      statements.push(batchIds);
      await pool.held;
      return { fields: [{ name: "batchId" }, { name: "available" }], rows: batchIds.map((batchId) => [batchId, 3]) };
    },
  };
  return { counts: new KeptCounts({ pool: pool as unknown as pg.Pool }), pool, statements };
}

const batchesOf = (visitor: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${visitor}'s batch ${index}`);

it("counting thousands of batches for one visitor of the marketplace delays no other visitor's count", async () => {
  const { counts, pool, statements } = openCounts();
  const { promise, resolve: go } = Promise.withResolvers<void>();
  pool.held = promise;
  const crawled = batchesOf("crawler", 2_000).map((batchId) => counts.read(batchId, { visitor: "crawler" }));
  await expect.poll(() => statements.length).toBe(1);
  const other = counts.read("wanted", { visitor: "other" });
  // The crawler asked for this batch too. One statement counts it for both visitors, together with "wanted".
  const shared = counts.read("crawler's batch 1999", { visitor: "other" });
  go();
  expect(await Promise.all([other, shared])).toEqual([3, 3]);
  expect(statements[1]).toEqual(expect.arrayContaining(["wanted", "crawler's batch 1999"]));
  await Promise.all(crawled);
  const counted = statements.flat();
  expect(counted.length).toBe(new Set(counted).size);
  expect(Math.max(...statements.map(({ length }) => length))).toBe(16);
});

it("visitors of the marketplace who see the same batches share the counts of these batches", async () => {
  const { counts, statements } = openCounts();
  const page = batchesOf("the issuer", 100);
  const visitors = Array.from({ length: 500 }, (_, index) => `visitor ${index}`);
  const read = (visitor: string) => Promise.all(page.map((batchId) => counts.read(batchId, { visitor })));
  expect(new Set((await Promise.all(visitors.map(read))).flat())).toEqual(new Set([3]));
  expect(statements.flat().toSorted()).toEqual(page.toSorted());
});

it("the marketplace drops only the oldest counts when it has counted many batches", async () => {
  const { counts, statements } = openCounts();
  const read = (batchId: string) => counts.read(batchId, { visitor: "visitor" });
  const [oldest = "", ...others] = batchesOf("visitor", 10_001);
  await read(oldest);
  for (let from = 0; from < others.length; from += 1_000) {
    await Promise.all(others.slice(from, from + 1_000).map(read));
  }
  statements.length = 0;
  await Promise.all(others.map(read));
  expect(statements).toEqual([]);
  await read(oldest);
  expect(statements).toEqual([[oldest]]);
});
