import { foldHashes, HASH_BYTES, hashLeaves, type LeafRange, rootOfRange, TILE_WIDTH, type TileId } from "./merkle.ts";

const TILE_BYTES = TILE_WIDTH * HASH_BYTES;
/** The highest level of a tree of 2^53 leaves. */
const LEVEL_MAX = 6;

/** The tile or bundle that a path under the log's address names. `level` is null for a bundle of entries. */
interface TilePath {
  level: number | null;
  index: number;
  /** The number of hashes: 1 to 256. */
  width: number;
}

/** The path of a tile or bundle under the log's address (C2SP tlog-tiles): `tile/0/x001/x234/067.p/5`. */
export function formatTilePath({ level, index, width }: TilePath): string {
  const groups = String(index)
    .replace(/\B(?=(\d{3})+$)/g, ",")
    .split(",");
  const number = groups.map((group, at) => `${at < groups.length - 1 ? "x" : ""}${group.padStart(3, "0")}`).join("/");
  return `tile/${level ?? "entries"}/${number}${width === TILE_WIDTH ? "" : `.p/${width}`}`;
}

/** Parses a path. Returns null unless it is the one that {@link formatTilePath} writes, so that every tile has a single path. */
export function parseTilePath(path: string): TilePath | null {
  const match = /^tile\/(\d|entries)\/((?:x\d{3}\/){0,5}\d{3})(?:\.p\/(\d{1,3}))?$/.exec(path);
  if (match === null) return null;
  const [, level = "", number = "", width] = match;
  const parsed = {
    level: level === "entries" ? null : Number(level),
    index: Number(number.replaceAll(/[x/]/g, "")),
    width: width === undefined ? TILE_WIDTH : Number(width),
  };
  const isValid = (parsed.level ?? 0) <= LEVEL_MAX && Number.isSafeInteger(parsed.index) && parsed.width > 0;
  return isValid && formatTilePath(parsed) === path ? parsed : null;
}

/** The number of hashes of a tile in a tree of this size: 0 when the tree is too small to have the tile. */
export function tileWidth({ level, index }: TileId, size: number): number {
  return Math.min(Math.max(Math.floor(size / TILE_WIDTH ** level) - index * TILE_WIDTH, 0), TILE_WIDTH);
}

/** A bundle (level 0: the data of leaves) or a tile (higher levels: hashes). An incomplete one has only its first hashes. */
export interface StoredTile extends TileId {
  hashes: Buffer;
}

/** The incomplete bundle and tiles at the right edge of a tree: one per level, but none for a level whose last tile is full. */
export function edgeTiles(size: number): TileId[] {
  const edge: TileId[] = [];
  for (let level = 0, count = size; count > 0; level++, count = Math.floor(count / TILE_WIDTH)) {
    if (count % TILE_WIDTH > 0) edge.push({ level, index: Math.floor(count / TILE_WIDTH) });
  }
  return edge;
}

/** Appends leaves to a tree of which only the right edge is known. */
export class TreeAppender {
  #size: number;
  /** The incomplete tile of each level. */
  readonly #edge: Buffer[] = [];
  /** Bundles and tiles that have grown, by level and index. */
  readonly #grown = new Map<string, StoredTile>();

  /** @param edge the tiles that `edgeTiles(size)` names. */
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
  append(entries: Buffer): void {
    const before = this.#size;
    this.#size += entries.length / HASH_BYTES;
    this.#grow(0, before, entries);
  }

  /** Appends full bundles, given as the root of each, to a tree that has only full bundles. */
  appendBundles(roots: Buffer): void {
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

  /** Returns the bundles and tiles that have grown and forgets them, so that only the edge of a long tree stays in memory. */
  takeGrown(): StoredTile[] {
    const grown = this.grown();
    this.#grown.clear();
    return grown;
  }

  /** Appends hashes to a level of `countBefore` hashes. Each tile that becomes full adds a hash to the next level. */
  #grow(level: number, countBefore: number, hashes: Buffer): void {
    const edge = this.#edge[level] ?? Buffer.alloc(0);
    const all = edge.length === 0 ? hashes : Buffer.concat([edge, hashes]);
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
