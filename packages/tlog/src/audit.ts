import { encodeHex, isEqual } from "./bytes.ts";
import { type LogSource, readBundle, readServedCheckpoint } from "./log-source.ts";
import { HASH_BYTES, TILE_WIDTH } from "./merkle.ts";
import type { Policy } from "./policy.ts";
import { type AddProblem, addProblemsTo, type Problems } from "./problems.ts";
import { formatTilePath } from "./tiles.ts";
import { hashLeaves, type StoredTile, TreeAppender } from "./tree.ts";

/** Number of bundles fetched at the same time. */
const BUNDLES_AT_ONCE = 8;

export interface TreeAudit extends Problems {
  origin: string;
  leaves: number;
  /** Number of tiles that were compared with the leaves. */
  tiles: number;
  /** The age of the newest cosignature in seconds. Null if there is none. */
  cosignedAge: number | null;
}

export interface TreeAuditOptions {
  /** The served log. */
  log: LogSource;
  policy: Policy;
  /** Maximum age of the newest cosignature. Seconds. */
  maxAge?: number | undefined;
  onLeaves?: (leaves: number) => void;
}

/** An event whose leaf the audit checks: its name in messages, and its hash in hex. */
export interface NamedLeaf {
  event: string;
  recordHash: string;
}

/**
 * Audits a served log, which anyone can do. Checks that its checkpoint meets the policy, that its leaves and every tile
 * lead to the checkpoint's root, and that the named leaves have the hashes of their events.
 */
export async function auditServedTree(
  { log, policy, maxAge, onLeaves = () => undefined }: TreeAuditOptions,
  namedLeaves = new Map<number, NamedLeaf>(),
): Promise<TreeAudit> {
  const { checkpoint, cosignedAge } = await readServedCheckpoint(log, policy, maxAge);
  const { origin, size, root } = checkpoint;
  const audit: TreeAudit = { origin, leaves: size, tiles: 0, cosignedAge, problemCount: 0, problems: [] };
  const report = addProblemsTo(audit);
  const appender = new TreeAppender(0, []);
  /** Incomplete tiles. While later leaves are read, hashes are added to them. */
  const partial = new Map<string, StoredTile>();
  for (let first = 0; first < size; first += BUNDLES_AT_ONCE * TILE_WIDTH) {
    const end = Math.min(first + BUNDLES_AT_ONCE * TILE_WIDTH, size);
    const length = Math.ceil((end - first) / TILE_WIDTH);
    const bundles = Array.from({ length }, (_, at) => readBundle(log, first / TILE_WIDTH + at, size));
    const leaves = Buffer.concat(await Promise.all(bundles));
    appender.append(leaves);
    for (let leaf = first; namedLeaves.size > 0 && leaf < end; leaf++) {
      compareLeaf(namedLeaves, leaf, leaves.subarray((leaf - first) * HASH_BYTES), report);
    }
    const full: StoredTile[] = [];
    for (const tile of appender.takeGrown()) {
      const key = `${tile.level}/${tile.index}`;
      partial.delete(key);
      if (tile.hashes.length === TILE_WIDTH * HASH_BYTES) full.push(tile);
      else partial.set(key, tile);
    }
    await compareTiles(log, full, audit, report);
    onLeaves(end);
  }
  await compareTiles(log, [...partial.values()], audit, report);
  if (!isEqual(appender.root(), root)) report("the leaves do not lead to the checkpoint's root");
  for (const [leaf, { event }] of namedLeaves)
    report(`${event} names leaf ${leaf}, which the checkpoint does not cover`);
  return audit;
}

function compareLeaf(namedLeaves: Map<number, NamedLeaf>, leaf: number, data: Uint8Array, report: AddProblem): void {
  const named = namedLeaves.get(leaf);
  if (named === undefined) return;
  namedLeaves.delete(leaf);
  if (encodeHex(data.subarray(0, HASH_BYTES)) !== named.recordHash)
    report(`${named.event} has another hash than leaf ${leaf}`);
}

async function compareTiles(
  log: LogSource,
  tiles: readonly StoredTile[],
  audit: TreeAudit,
  report: AddProblem,
): Promise<void> {
  await Promise.all(
    tiles.map(async ({ level, index, hashes }) => {
      const path = formatTilePath({ level, index, width: hashes.length / HASH_BYTES });
      const served = await log.read(path);
      const computed = level === 0 ? hashLeaves(hashes) : hashes;
      if (served === null || !isEqual(served, computed)) report(`${path} is not that of the leaves`);
      audit.tiles += 1;
    }),
  );
}
