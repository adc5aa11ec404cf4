import { HASH_BYTES, TILE_WIDTH, type TileId } from "./merkle.ts";

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

/** Parses a path. Null unless {@link formatTilePath} writes exactly this text, so each tile has only one path. */
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

/** The number of hashes of a tile in a tree of this size. 0 if the tree is too small to have the tile. */
export function tileWidth({ level, index }: TileId, size: number): number {
  return Math.min(Math.max(Math.floor(size / TILE_WIDTH ** level) - index * TILE_WIDTH, 0), TILE_WIDTH);
}

/** Formats a bundle (C2SP tlog-tiles). Each entry follows its length, which is a two-byte number. */
export function formatBundle(entries: Uint8Array): Uint8Array {
  const bundle = new Uint8Array((entries.length / HASH_BYTES) * (2 + HASH_BYTES));
  for (let at = 0, to = 0; at < entries.length; at += HASH_BYTES, to += 2 + HASH_BYTES) {
    bundle[to + 1] = HASH_BYTES;
    bundle.set(entries.subarray(at, at + HASH_BYTES), to + 2);
  }
  return bundle;
}

/** Parses the first `width` entries of a bundle. Null if not all of them are hashes. */
export function parseBundle(bytes: Uint8Array, width: number): Uint8Array | null {
  const leaves = new Uint8Array(width * HASH_BYTES);
  for (let leaf = 0, at = 0; leaf < width; leaf++, at += 2 + HASH_BYTES) {
    if (at + 2 + HASH_BYTES > bytes.length || bytes[at] !== 0 || bytes[at + 1] !== HASH_BYTES) return null;
    leaves.set(bytes.subarray(at + 2, at + 2 + HASH_BYTES), leaf * HASH_BYTES);
  }
  return leaves;
}
