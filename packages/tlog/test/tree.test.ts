import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { naivePath, naiveProof, naiveRoot } from "../../../test/support/naive-merkle.ts";
import {
  consistencyRanges,
  hashLeaf,
  inclusionRanges,
  rootFromInclusion,
  tilesOf,
  verifyConsistency,
} from "../src/merkle.ts";
import { formatTilePath, parseTilePath, tileWidth } from "../src/tiles.ts";
import {
  edgeTiles,
  foldHashes,
  hashLeaves,
  type ReadTile,
  rootOfRange,
  type StoredTile,
  TreeAppender,
} from "../src/tree.ts";

const leafOf = (index: number) => createHash("sha256").update(`leaf ${index}`).digest();
const ALL = Array.from({ length: 70_000 }, (_, index) => leafOf(index));

it("the tree of the eight known leaves of RFC 6962 has the known root", async () => {
  const data = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
  const hashes = Buffer.concat(await Promise.all(data.map((leaf) => hashLeaf(Buffer.from(leaf, "hex")))));
  expect(foldHashes(hashes).toString("hex")).toBe("5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
  expect(rootOfRange({ start: 0, end: 0 }, () => Buffer.alloc(0)).toString("hex")).toBe(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  );
});

it("a tree that grows in steps of any size has the same root and proofs as a second implementation", async () => {
  const portions = fc.array(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 200, max: 700 })), {
    minLength: 1,
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(portions, fc.nat(), fc.nat(), fc.integer({ min: 1, max: 300 }), async (counts, a, b, slice) => {
      const store = new Store();
      for (const count of counts) {
        const root = store.append(count, slice).root();
        expect(root).toEqual(naiveRoot(ALL.slice(0, store.size)));
      }
      const leaves = ALL.slice(0, store.size);
      const index = a % store.size;
      const oldSize = 1 + (b % store.size);
      const roots = (ranges: ReturnType<typeof inclusionRanges>) =>
        ranges.map((range) => rootOfRange(range, store.read));
      expect(roots(inclusionRanges(index, store.size))).toEqual(naivePath(index, leaves));
      const proof = roots(consistencyRanges(oldSize, store.size));
      expect(proof).toEqual(naiveProof(oldSize, leaves));
      const oldRoot = naiveRoot(leaves.slice(0, oldSize));
      expect(await verifyConsistency(oldSize, oldRoot, store.size, naiveRoot(leaves), proof)).toBe(true);
    }),
    { numRuns: 15 },
  );
});

it("the tree has three levels of tiles at 70 000 leaves, and a proof reads only a few tiles", () => {
  const store = new Store();
  store.append(65_536, 2_048);
  const tree = store.append(4_464, 2_048);
  expect(edgeTiles(70_000).map((tile) => [tile.level, tile.index, tileWidth(tile, 70_000)])).toEqual([
    [0, 273, 112],
    [1, 1, 17],
    [2, 0, 1],
  ]);
  expect(tree.root()).toEqual(naiveRoot(ALL));
  const path = inclusionRanges(69_999, 70_000);
  expect(path.map((range) => rootOfRange(range, store.read))).toEqual(naivePath(69_999, ALL));
  expect(tilesOf(inclusionRanges(12_345, 70_000))).toEqual([
    { level: 0, index: 48 },
    { level: 1, index: 0 },
    { level: 1, index: 1 },
    { level: 0, index: 273 },
  ]);
});

it("no proof exists for a leaf outside the tree, and none from a larger tree to a smaller tree", async () => {
  const [left, right] = [leafOf(1), leafOf(2)];
  expect(await rootFromInclusion(1, 2, right, [left])).not.toBeNull();
  for (const index of [2, 3]) expect(await rootFromInclusion(index, 2, right, [left])).toBeNull();
  expect(await verifyConsistency(3, left, 2, left, [])).toBe(false);
  expect([inclusionRanges(0, 0), consistencyRanges(0, 5), consistencyRanges(6, 5)]).toEqual([[], [], []]);
});

it("the tree refuses to grow if a tile at its right edge is missing or too short", () => {
  const edge = { level: 0, index: 0, hashes: Buffer.concat(ALL.slice(0, 9)) };
  expect(() => new TreeAppender(10, [edge])).toThrow(/too short/);
  expect(() => new TreeAppender(10, [])).toThrow(/missing/);
  expect(new TreeAppender(9, [edge]).root()).toEqual(naiveRoot(ALL.slice(0, 9)));
});

it("the tree is split at powers of two, up to the largest safe integer", () => {
  for (const exponent of [31, 32, 33, 48, 52]) {
    const size = 2 ** exponent;
    expect(inclusionRanges(0, size - 1)).toHaveLength(exponent);
    expect(inclusionRanges(size, size + 1)).toEqual([{ start: 0, end: size }]);
    expect(inclusionRanges(0, size).at(-1)).toEqual({ start: size / 2, end: size });
  }
});

describe("the paths of tiles", () => {
  it.each([
    ["tile/0/000", { level: 0, index: 0, width: 256 }],
    ["tile/0/x001/x234/067", { level: 0, index: 1_234_067, width: 256 }],
    ["tile/1/005.p/17", { level: 1, index: 5, width: 17 }],
    ["tile/entries/x273/000.p/255", { level: null, index: 273_000, width: 255 }],
  ])("the path of a tile %s is unchanged after it is read and written again", (path, tile) => {
    expect(parseTilePath(path)).toEqual(tile);
    expect(formatTilePath(tile)).toBe(path);
  });

  it.each([
    "tile/0/0",
    "tile/0/0000",
    "tile/0/x000/001",
    "tile/00/001",
    "tile/7/000",
    "tile/-1/000",
    "tile/0/001.p/0",
    "tile/0/001.p/256",
    "tile/0/001.p/01",
    "tile/0/001.p/",
    "tile/0/001/002",
    "tile/0/x001/x002",
    "tile/0/x999/x999/x999/x999/x999/999",
    "tile/data/001",
    "tile/0/000/",
    "tile/0/000\n",
    "../tile/0/000",
  ])("the parser of tile paths refuses %j", (path) => {
    expect(parseTilePath(path)).toBeNull();
  });
});

/** Tiles as a database stores them. */
class Store {
  size = 0;
  readonly #tiles = new Map<string, StoredTile>();

  append(count: number, slice: number): TreeAppender {
    const edge = edgeTiles(this.size).map(({ level, index }) => this.#get(level, index));
    const tree = new TreeAppender(this.size, edge);
    for (let from = this.size; from < this.size + count; from += slice) {
      tree.append(Buffer.concat(ALL.slice(from, Math.min(from + slice, this.size + count))));
    }
    for (const tile of tree.grown()) {
      const before = this.#tiles.get(`${tile.level}/${tile.index}`);
      // A stored tile can only be extended at its end.
      if (before !== undefined) expect(tile.hashes.subarray(0, before.hashes.length)).toEqual(before.hashes);
      this.#tiles.set(`${tile.level}/${tile.index}`, tile);
    }
    this.size = tree.size;
    return tree;
  }

  /** Reads each tile with all of its hashes. Fails for a tile that does not exist. */
  readonly read: ReadTile = ({ level, index }) => {
    const { hashes } = this.#get(level, index);
    return level === 0 ? hashLeaves(hashes) : hashes;
  };

  #get(level: number, index: number): StoredTile {
    const tile = this.#tiles.get(`${level}/${index}`);
    if (tile === undefined) throw new Error(`there is no tile ${level}/${index}`);
    return tile;
  }
}
