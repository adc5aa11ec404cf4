import { isEqual, sha256 } from "./bytes.ts";

/** The size of a hash, and of a leaf's data. Bytes. */
export const HASH_BYTES = 32;
/** Number of hashes in a full tile. They are the lowest level of a complete subtree of height 8. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

/** Leaves from `start` to `end`, exclusive. */
export interface LeafRange {
  start: number;
  end: number;
}

/** Names a tile: up to 256 hashes at height 8 × `level`. The first of them is number `index` × 256 at this height. */
export interface TileId {
  level: number;
  index: number;
}

interface Subtree {
  /** The base-2 logarithm of the number of the subtree's leaves. */
  height: number;
  /** The subtree's position among the subtrees of this height. The first is 0. */
  index: number;
}

/**
 * The ranges whose roots form the inclusion proof of a leaf. Starts with the leaf's sibling (RFC 6962, section 2.1.1).
 */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  return descend(size, ({ start, end }) => end - start === 1, index).siblings;
}

/**
 * The ranges whose roots form the consistency proof: that the tree with `size` leaves continues the tree with `oldSize`
 * leaves (RFC 6962, section 2.1.2).
 */
export function consistencyRanges(oldSize: number, size: number): LeafRange[] {
  if (oldSize === 0 || oldSize >= size) return [];
  const { siblings, reached } = descend(size, ({ end }) => end === oldSize, oldSize - 1);
  // If the range is the whole old tree, the proof omits its root, which the verifier knows.
  return reached.start > 0 ? [reached, ...siblings] : siblings;
}

/**
 * Descends from the root of a tree toward a leaf, to the first range for which `isGoal` is true. Returns the siblings
 * of the ranges on the way, from the bottom up.
 */
function descend(size: number, isGoal: (range: LeafRange) => boolean, leaf: number) {
  const siblings: LeafRange[] = [];
  let reached: LeafRange = { start: 0, end: size };
  while (reached.end > reached.start && !isGoal(reached)) {
    const { start, end } = reached;
    const middle = start + splitSize(end - start);
    const isLeft = leaf < middle;
    reached = isLeft ? { start, end: middle } : { start: middle, end };
    siblings.unshift(isLeft ? { start: middle, end } : { start, end: middle });
  }
  return { siblings, reached };
}

/** The tiles with the hashes that are needed to compute the roots of these ranges, each tile once. */
export function tilesOf(ranges: readonly LeafRange[]): TileId[] {
  const found = new Map<string, TileId>();
  for (const range of ranges) {
    for (const subtree of subtreesOf(range)) {
      const { level, index } = placeOf(subtree);
      found.set(`${level}/${index}`, { level, index });
    }
  }
  return [...found.values()];
}

/** The complete subtrees of a range, from left to right. */
export function subtreesOf({ start, end }: LeafRange): Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = start; at < end; ) {
    const height = floorLog2(end - at);
    subtrees.push({ height, index: at / 2 ** height });
    at += 2 ** height;
  }
  return subtrees;
}

/** Where the hashes for a subtree's root are: `count` hashes of one tile, from number `offset` on. */
export function placeOf({ height, index }: Subtree): TileId & { offset: number; count: number } {
  const count = 2 ** (height % TILE_HEIGHT);
  const first = index * count;
  return {
    level: Math.floor(height / TILE_HEIGHT),
    index: Math.floor(first / TILE_WIDTH),
    offset: first % TILE_WIDTH,
    count,
  };
}

/** The largest power of two smaller than `size`. */
function splitSize(size: number): number {
  return 2 ** floorLog2(size - 1);
}

function floorLog2(count: number): number {
  const high = Math.floor(count / 2 ** 32);
  return high > 0 ? 63 - Math.clz32(high) : 31 - Math.clz32(count);
}

/** The hash of a leaf (RFC 6962, section 2.1): SHA-256 of a zero byte and the leaf's data. */
export function hashLeaf(data: Uint8Array): Promise<Uint8Array> {
  return sha256(Uint8Array.of(0), data);
}

/** The hash of an inner node (RFC 6962, section 2.1). */
function hashNode(left: Uint8Array, right: Uint8Array): Promise<Uint8Array> {
  return sha256(Uint8Array.of(1), left, right);
}

/** Computes the root from an inclusion proof. Null if the proof's length or the index does not fit the tree. */
export async function rootFromInclusion(
  index: number,
  size: number,
  leafHash: Uint8Array,
  proof: readonly Uint8Array[],
): Promise<Uint8Array | null> {
  if (index >= size) return null;
  const ranges = inclusionRanges(index, size);
  if (ranges.length !== proof.length) return null;
  let node = leafHash;
  for (const [at, { start }] of ranges.entries()) {
    const sibling = proof[at] as Uint8Array;
    node = await (start > index ? hashNode(node, sibling) : hashNode(sibling, node));
  }
  return node;
}

/** Whether a proof shows that the tree of `size` and `root` continues the tree of `oldSize` and `oldRoot`. */
export async function verifyConsistency(
  oldSize: number,
  oldRoot: Uint8Array,
  size: number,
  root: Uint8Array,
  proof: readonly Uint8Array[],
): Promise<boolean> {
  if (oldSize > size) return false;
  if (oldSize === size) return proof.length === 0 && isEqual(oldRoot, root);
  if (oldSize === 0) return proof.length === 0;
  const ranges = consistencyRanges(oldSize, size);
  if (ranges.length !== proof.length) return false;
  // If no range ends where the old tree ends, the old tree is a complete subtree of the new one. Its root is then not
  // part of the proof.
  const oldIsSubtree = (ranges[0]?.end ?? 0) > oldSize;
  const first = oldIsSubtree ? oldRoot : (proof[0] as Uint8Array);
  let [oldNode, node] = [first, first];
  for (const [at, { start }] of ranges.entries()) {
    const sibling = proof[at] as Uint8Array;
    if (at === 0 && !oldIsSubtree) continue;
    if (start >= oldSize) node = await hashNode(node, sibling);
    else [oldNode, node] = await Promise.all([hashNode(sibling, oldNode), hashNode(sibling, node)]);
  }
  return isEqual(oldNode, oldRoot) && isEqual(node, root);
}
