import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CheckpointNote, parseCheckpoint } from "./checkpoint.ts";
import { readIfThere } from "./durable-file.ts";
import { HASH_BYTES, type LeafRange, TILE_WIDTH, type TileId, tilesOf } from "./merkle.ts";
import { NotAccepted, type Policy, verifyCheckpoint } from "./policy.ts";
import { formatTilePath, parseBundle, tileWidth } from "./tiles.ts";
import type { ReadTile } from "./tree.ts";

/** Maximum wait for a file of a log. Milliseconds. */
const WAIT_MAX_MS = 10_000;
/** Maximum length of a response. Bytes. The longest response is a page of a public history. */
const FILE_MAX = 100_000;
/** Maximum number of requests for one file while the server responds with 429. */
const ATTEMPTS_MAX = 10;
/** Maximum wait between requests for one file. Milliseconds. */
const RETRY_MAX_MS = 10_000;

/** A log or a copy of a log does not respond. This tells nothing about the log itself. */
export class SourceUnavailable extends Error {}

/** Reads a served log, or a copy of one in the same layout (C2SP tlog-tiles), and public histories. */
export interface LogSource {
  /** The address or directory of the copy, for messages. */
  from: string;
  /** The bytes at a path under the log's address. Null if there are none. */
  read(path: string): Promise<Buffer | null>;
}

/** Opens a copy by its URL or its directory. */
export function openLogSource(from: string): LogSource {
  return {
    from,
    read: /^https?:/.test(from) ? (path) => fetchFile(from, path) : (path) => readIfThere(join(from, path)),
  };
}

/** @throws SourceUnavailable, including when the server fails; NotAccepted for a response that no log can send. */
async function fetchFile(address: string, path: string, attempt = 1): Promise<Buffer | null> {
  const url = `${address.replace(/\/$/, "")}/${path}`;
  const { response, bytes } = await fetch(url, { signal: AbortSignal.timeout(WAIT_MAX_MS) })
    .then(async (response) => ({ response, bytes: await readBody(response.body ?? [], FILE_MAX) }))
    .catch((cause) => {
      throw new SourceUnavailable(`${address} does not answer.`, { cause });
    });
  if (bytes === null) throw new NotAccepted(`${address}/${path} is longer than any file of a log.`);
  if (response.status === 404) return null;
  if (response.status === 429 && attempt < ATTEMPTS_MAX) {
    const seconds = Number(response.headers.get("retry-after") ?? 1);
    await sleep(Number.isFinite(seconds) ? Math.min(seconds * 1_000, RETRY_MAX_MS) : RETRY_MAX_MS);
    return fetchFile(address, path, attempt + 1);
  }
  // An error of the server tells nothing about the log itself.
  if (response.status !== 200) throw new SourceUnavailable(`${address}/${path} answers ${response.status}.`);
  return bytes;
}

/** Reads a body. Null if it is longer than `bytesMax`. */
export async function readBody(body: AsyncIterable<Uint8Array> | [], bytesMax: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Default of the maximum age of the newest cosignature. Seconds. */
export const COSIGNATURE_MAX_AGE = 86_400;

/**
 * Reads a copy's checkpoint and verifies it against a policy.
 * @param maxAge the maximum age of the newest cosignature, in seconds. It has no effect if there is no cosignature.
 * @throws NotAccepted
 */
export async function readServedCheckpoint(
  source: LogSource,
  policy: Policy,
  maxAge = COSIGNATURE_MAX_AGE,
): Promise<{ checkpoint: CheckpointNote; text: string; cosignedAge: number | null }> {
  const text = String((await source.read("checkpoint")) ?? "");
  const checkpoint = parseCheckpoint(text);
  if (checkpoint === null) throw new NotAccepted(`${source.from} serves no checkpoint.`);
  const times = (await verifyCheckpoint(policy, checkpoint)).map(({ time }) => time ?? 0);
  const age = Math.floor(Date.now() / 1_000) - Math.max(...times);
  if (times.length > 0 && age > maxAge) {
    throw new NotAccepted(
      `The newest cosignature is ${age} seconds old, more than ${maxAge}: ${source.from} serves an old ` +
        "checkpoint, or its witnesses do not answer. A log is cosigned every ten minutes; see --max-age.",
    );
  }
  return { checkpoint, text, cosignedAge: times.length === 0 ? null : age };
}

/** The data of a bundle's leaves in a tree of this size. @throws NotAccepted when the copy lacks the data. */
export async function readBundle(source: LogSource, index: number, size: number): Promise<Uint8Array> {
  const width = tileWidth({ level: 0, index }, size);
  // Tries the full bundle too, because a copy of a larger tree may have only that.
  for (const servedWidth of width === TILE_WIDTH ? [width] : [width, TILE_WIDTH]) {
    const bytes = await source.read(formatTilePath({ level: null, index, width: servedWidth }));
    if (bytes === null) continue;
    const leaves = parseBundle(bytes, width);
    if (leaves === null) throw new NotAccepted(`${source.from}, bundle ${index} is not made of ${width} hashes.`);
    return leaves;
  }
  throw new NotAccepted(`${source.from} has no bundle ${index} with ${width} leaves.`);
}

/** In a tree of this size, reads the tiles from which the roots of these ranges are computed. @throws NotAccepted */
export async function fetchTiles(source: LogSource, ranges: readonly LeafRange[], size: number): Promise<ReadTile> {
  const tiles = new Map<string, Buffer>();
  for (const tile of tilesOf(ranges)) tiles.set(`${tile.level}/${tile.index}`, await fetchTile(source, tile, size));
  return ({ level, index }) => tiles.get(`${level}/${index}`) ?? Buffer.alloc(0);
}

/** The hashes of a tile in a tree of this size. @throws NotAccepted when the copy lacks them. */
export async function fetchTile(source: LogSource, tile: TileId, size: number): Promise<Buffer> {
  const width = tileWidth(tile, size);
  const path = formatTilePath({ ...tile, width });
  const bytes = await source.read(path);
  if (bytes?.length !== width * HASH_BYTES) throw new NotAccepted(`${source.from} has no valid ${path}.`);
  return bytes;
}
