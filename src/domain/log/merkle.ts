import { hash } from "node:crypto";

/** The size of a hash, and of a leaf's data. Bytes. */
export const HASH_BYTES = 32;
/** Hashes in a full tile: the lowest level of a complete subtree of height 8. */
export const TILE_WIDTH = 256;
const TILE_HEIGHT = 8;

/** The input for the hash of an inner node: a byte 1, then the hashes of both children. Reused for every node. */
const NODE = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

/** The hash of a leaf (RFC 6962, section 2.1): SHA-256 of a zero byte and the leaf's data. */
export function hashLeaf(data: Uint8Array): Buffer {
  return sha256(Buffer.concat([Buffer.of(0), data]));
}

/** The hash of an inner node (RFC 6962, section 2.1). */
function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  NODE.set(left, 1);
  NODE.set(right, 1 + HASH_BYTES);
  return sha256(NODE);
}

// `hash` returns a string with one character per byte in a third of the time that it needs to return a Buffer.
function sha256(data: Uint8Array): Buffer {
  return Buffer.from(hash("sha256", data, "binary"), "binary");
}

/** The concatenated hashes of leaves. `entries` is their concatenated data, 32 bytes per leaf. */
export function hashLeaves(entries: Uint8Array): Buffer {
  const leaf = Buffer.alloc(1 + HASH_BYTES);
  const hashes = Buffer.allocUnsafe(entries.length);
  for (let at = 0; at < entries.length; at += HASH_BYTES) {
    leaf.set(entries.subarray(at, at + HASH_BYTES), 1);
    hashes.write(hash("sha256", leaf, "binary"), at, "binary");
  }
  return hashes;
}

/** The root of a complete subtree, from its concatenated hashes at one height. Their number is a power of two. */
export function foldHashes(hashes: Uint8Array): Buffer {
  const work = Buffer.from(hashes);
  for (let length = work.length; length > HASH_BYTES; length /= 2) {
    for (let at = 0; at < length; at += 2 * HASH_BYTES) {
      NODE.set(work.subarray(at, at + 2 * HASH_BYTES), 1);
      work.write(hash("sha256", NODE, "binary"), at / 2, "binary");
    }
  }
  return work.subarray(0, HASH_BYTES);
}

/** Leaves from `start` up to, not including, `end`. */
export interface LeafRange {
  start: number;
  end: number;
}

/** Names a tile: up to 256 hashes at height 8 × `level`, the first of which has the number `index` × 256. */
export interface TileId {
  level: number;
  index: number;
}

/** Returns the concatenated hashes of a tile, at least as many as the requested ranges need. */
export type ReadTile = (tile: TileId) => Uint8Array;

interface Subtree {
  /** Base-2 logarithm of the number of its leaves. */
  height: number;
  /** Its number among the subtrees of this height. */
  index: number;
}

/** The ranges whose roots form the inclusion proof of a leaf. Starts with the leaf's sibling (RFC 6962, section 2.1.1). */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  const ranges: LeafRange[] = [];
  for (let start = 0, end = size; end - start > 1; ) {
    const middle = start + splitSize(end - start);
    if (index < middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  return ranges.reverse();
}

/** The ranges whose roots form the proof that the tree of `size` continues the one of `oldSize` (RFC 6962, section 2.1.2). */
export function consistencyRanges(oldSize: number, size: number): LeafRange[] {
  if (oldSize === 0 || oldSize === size) return [];
  const ranges: LeafRange[] = [];
  let [start, end] = [0, size];
  while (oldSize < end) {
    const middle = start + splitSize(end - start);
    if (oldSize <= middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  // The remaining range ends where the old tree ends. If it is the whole old tree, the proof omits its root, which the verifier knows.
  if (start > 0) ranges.push({ start, end });
  return ranges.reverse();
}

/** The tiles whose hashes are needed to compute the roots of these ranges, each tile once. */
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

/** The root of a range of leaves. The range must be one of a proof, or start at 0. */
export function rootOfRange(range: LeafRange, read: ReadTile): Buffer {
  const roots = subtreesOf(range).map((subtree) => {
    const { level, index, offset, count } = placeOf(subtree);
    const hashes = read({ level, index }).subarray(offset * HASH_BYTES, (offset + count) * HASH_BYTES);
    if (hashes.length !== count * HASH_BYTES) throw new Error(`tile ${level}/${index} is too short`);
    return foldHashes(hashes);
  });
  return roots.length === 0 ? sha256(Buffer.alloc(0)) : roots.reduceRight((right, left) => hashNode(left, right));
}

/** The complete subtrees of a range, from left to right. */
function subtreesOf({ start, end }: LeafRange): Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = start; at < end; ) {
    const height = floorLog2(end - at);
    subtrees.push({ height, index: at / 2 ** height });
    at += 2 ** height;
  }
  return subtrees;
}

/** Finds the hashes from which a subtree's root is computed: `count` hashes of one tile, from number `offset` on. */
function placeOf({ height, index }: Subtree): TileId & { offset: number; count: number } {
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

/** Computes the root from an inclusion proof. Returns null when the proof is too short or too long, or the index is outside the tree. */
export function rootFromInclusion(
  index: number,
  size: number,
  leafHash: Uint8Array,
  proof: readonly Uint8Array[],
): Uint8Array | null {
  if (index >= size) return null;
  const ranges = inclusionRanges(index, size);
  if (ranges.length !== proof.length) return null;
  return ranges.reduce<Uint8Array>((node, { start }, at) => {
    const sibling = proof[at] as Uint8Array;
    return start > index ? hashNode(node, sibling) : hashNode(sibling, node);
  }, leafHash);
}

/** Whether a proof shows that the tree of `size` and `root` continues the one of `oldSize` and `oldRoot`. */
export function verifyConsistency(
  oldSize: number,
  oldRoot: Uint8Array,
  size: number,
  root: Uint8Array,
  proof: readonly Uint8Array[],
): boolean {
  if (oldSize > size) return false;
  if (oldSize === size) return proof.length === 0 && Buffer.compare(oldRoot, root) === 0;
  if (oldSize === 0) return proof.length === 0;
  const ranges = consistencyRanges(oldSize, size);
  if (ranges.length !== proof.length) return false;
  // If no range ends where the old tree ends, the old tree is a complete subtree of the new one, and the proof omits its root.
  const oldIsSubtree = (ranges[0]?.end ?? 0) > oldSize;
  const first = oldIsSubtree ? oldRoot : (proof[0] as Uint8Array);
  let [oldNode, node] = [first, first];
  for (const [at, { start }] of ranges.entries()) {
    const sibling = proof[at] as Uint8Array;
    if (at === 0 && !oldIsSubtree) continue;
    if (start >= oldSize) node = hashNode(node, sibling);
    else [oldNode, node] = [hashNode(sibling, oldNode), hashNode(sibling, node)];
  }
  return Buffer.compare(oldNode, oldRoot) === 0 && Buffer.compare(node, root) === 0;
}
