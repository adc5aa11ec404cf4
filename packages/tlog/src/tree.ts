// For servers, which hash millions of nodes: Web Crypto takes ten times as long per hash as Node's own function.
import { hash } from "node:crypto";
import { HASH_BYTES, type LeafRange, placeOf, subtreesOf, TILE_WIDTH, type TileId } from "./merkle.ts";
import { tileWidth } from "./tiles.ts";

const TILE_BYTES = TILE_WIDTH * HASH_BYTES;

/** The input for the hash of an inner node: a byte 1, then both children's hashes. Reused for every node. */
const NODE = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

function hashNode(left: Uint8Array, right: Uint8Array): Buffer {
  NODE.set(left, 1);
  NODE.set(right, 1 + HASH_BYTES);
  return sha256(NODE);
}

// Asks `hash` for a string with one character per byte, because this takes a third of the time of a Buffer.
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

/** Returns the concatenated hashes of a tile, at least as many as the requested ranges need. */
export type ReadTile = (tile: TileId) => Uint8Array;

/** The root of a range of leaves. The range must occur in a proof, or start at 0. */
export function rootOfRange(range: LeafRange, read: ReadTile): Buffer {
  const roots = subtreesOf(range).map((subtree) => {
    const { level, index, offset, count } = placeOf(subtree);
    const hashes = read({ level, index }).subarray(offset * HASH_BYTES, (offset + count) * HASH_BYTES);
    if (hashes.length !== count * HASH_BYTES) throw new Error(`tile ${level}/${index} is too short`);
    return foldHashes(hashes);
  });
  return roots.length === 0 ? sha256(Buffer.alloc(0)) : roots.reduceRight((right, left) => hashNode(left, right));
}

/** A bundle (level 0: the data of leaves) or a tile (higher levels: hashes), full or only its beginning. */
export interface StoredTile extends TileId {
  hashes: Buffer;
}

/**
 * The incomplete bundle and tiles at the right edge of a tree: one per level, except levels whose last tile is full.
 */
export function edgeTiles(size: number): TileId[] {
  const edge: TileId[] = [];
  for (let level = 0, count = size; count > 0; level++, count = Math.floor(count / TILE_WIDTH)) {
    if (count % TILE_WIDTH > 0) edge.push({ level, index: Math.floor(count / TILE_WIDTH) });
  }
  return edge;
}

/** Appends leaves to a tree. It needs only the tree's right edge. */
export class TreeAppender {
  #size: number;
  /** The incomplete tile of each level. */
  readonly #edge: Buffer[] = [];
  /** Bundles and tiles that have grown, by level and index. */
  readonly #grown = new Map<string, StoredTile>();

  /** @param edge the tiles that `edgeTiles(size)` lists. */
  constructor(size: number, edge: readonly StoredTile[]) {
    this.#size = size;
    for (const wanted of edgeTiles(size)) {
      const found = edge.find(({ level, index }) => level === wanted.level && index === wanted.index);
      const width = tileWidth(wanted, size);
      if (found === undefined || found.hashes.length < width * HASH_BYTES) {
        throw new Error(`the tree's tile ${wanted.level}/${wanted.index} is missing or too short`);
      }
      this.#edge[wanted.level] = found.hashes.subarray(0, width * HASH_BYTES);
    }
  }

  get size(): number {
    return this.#size;
  }

  /** Appends leaves, given as their data, 32 bytes each. */
  append(entries: Uint8Array): void {
    const before = this.#size;
    this.#size += entries.length / HASH_BYTES;
    this.#grow(0, before, entries);
  }

  /** Appends full bundles, given by their roots, to a tree that has only full bundles. */
  appendBundles(roots: Uint8Array): void {
    const before = this.#size / TILE_WIDTH;
    this.#size += (roots.length / HASH_BYTES) * TILE_WIDTH;
    this.#grow(1, before, roots);
  }

  /** The root of the tree. */
  root(): Buffer {
    const whole: LeafRange = { start: 0, end: this.#size };
    return rootOfRange(whole, ({ level }) => {
      const edge = this.#edge[level] ?? Buffer.alloc(0);
      return level === 0 ? hashLeaves(edge) : edge;
    });
  }

  /** The bundles and tiles that have grown, each with all of its hashes. */
  grown(): StoredTile[] {
    return [...this.#grown.values()];
  }

  /** Returns the grown bundles and tiles, and forgets them, so that memory holds only a large tree's edge. */
  takeGrown(): StoredTile[] {
    const grown = this.grown();
    this.#grown.clear();
    return grown;
  }

  /**
   * Appends hashes to a level that has `countBefore` hashes. Each tile that becomes full adds a hash to the next level.
   */
  #grow(level: number, countBefore: number, hashes: Uint8Array): void {
    const edge = this.#edge[level] ?? Buffer.alloc(0);
    // Makes no copy if no bytes precede the new ones.
    const all =
      edge.length > 0 ? Buffer.concat([edge, hashes]) : Buffer.from(hashes.buffer, hashes.byteOffset, hashes.length);
    const firstIndex = Math.floor(countBefore / TILE_WIDTH);
    const above: Buffer[] = [];
    for (let at = 0; at < all.length; at += TILE_BYTES) {
      const tile = all.subarray(at, at + TILE_BYTES);
      const index = firstIndex + at / TILE_BYTES;
      this.#grown.set(`${level}/${index}`, { level, index, hashes: tile });
      if (tile.length === TILE_BYTES) above.push(foldHashes(level === 0 ? hashLeaves(tile) : tile));
    }
    this.#edge[level] = all.subarray(above.length * TILE_BYTES);
    if (above.length > 0) this.#grow(level + 1, firstIndex, Buffer.concat(above));
  }
}
