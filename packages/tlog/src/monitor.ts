import { mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isEqual } from "./bytes.ts";
import { type CheckpointNote, parseCheckpoint } from "./checkpoint.ts";
import { DamagedState, readIfThere, replaceFile, writeDurably } from "./durable-file.ts";
import {
  fetchTile,
  fetchTiles,
  type LogSource,
  openLogSource,
  readBundle,
  readServedCheckpoint,
} from "./log-source.ts";
import {
  consistencyRanges,
  HASH_BYTES,
  hashLeaf,
  inclusionRanges,
  type LeafRange,
  rootFromInclusion,
  TILE_WIDTH,
  verifyConsistency,
} from "./merkle.ts";
import { isSignedBy } from "./note.ts";
import { NotAccepted, type Policy } from "./policy.ts";
import { verifyProof } from "./receipt.ts";
import { formatBundle, formatTilePath } from "./tiles.ts";
import { foldHashes, hashLeaves, rootOfRange, TreeAppender } from "./tree.ts";

interface MonitorOptions {
  source: LogSource;
  policy: Policy;
  /** The directory with the last checkpoint and, with `keep`, every bundle. */
  state: string;
  /** Whether to copy every bundle. */
  keep: boolean;
  /** Receipts of events that must be in the log. */
  receipts: readonly string[];
  /** The origin of a retired log that this log continues. Give it if the last run was on the retired log. */
  retired?: string | undefined;
  /** Maximum age of the newest cosignature. Seconds. */
  maxAge?: number;
}

interface Monitored {
  origin: string;
  size: number;
  /** The size at the last run. 0 at the first run. */
  before: number;
  /** The number of verified receipts. */
  receipts: number;
  /** The age of the newest cosignature in seconds. Null if there is none. */
  cosignedAge: number | null;
}

/** The log has signed two statements that contradict each other. */
class Contradiction extends NotAccepted {}

/**
 * Verifies a served log's checkpoint. It must be signed and cosigned as the policy requires, continue the checkpoint of
 * the last run, and contain the event of every given receipt. Keeps the checkpoint for the next run.
 * @throws NotAccepted with the reason. A checkpoint that is proved to contradict what the log signed earlier is kept in
 * `state` as `refused-<size>`.
 * @throws DamagedState, SourceUnavailable
 */
export async function monitorLog(options: MonitorOptions): Promise<Monitored> {
  const { source, policy, state, keep, receipts, retired, maxAge } = options;
  await mkdir(state, { recursive: true });
  const file = join(state, "checkpoint");
  const before = await readKept(file, policy);
  const { checkpoint: served, text, cosignedAge } = await readServedCheckpoint(source, policy, maxAge);
  try {
    if (before !== null && before.origin !== served.origin && before.origin !== retired) {
      throw new NotAccepted(
        `The log is now ${served.origin}, and was ${before.origin}. If that one was retired, see --retired.`,
      );
    }
    if (before !== null) await verifyContinuation(source, before, served);
    for (const receipt of receipts) await verifyPresence(source, policy, served, receipt);
    if (keep) await mirror(source, state, served);
  } catch (error) {
    if (error instanceof Contradiction) await writeDurably(join(state, `refused-${served.size}`), text);
    throw error;
  }
  await writeDurably(file, text);
  const { origin, size } = served;
  return { origin, size, before: before?.size ?? 0, receipts: receipts.length, cosignedAge };
}

/** Reads the checkpoint of the last run. Null before the first run. @throws DamagedState */
async function readKept(file: string, { logs }: Policy): Promise<CheckpointNote | null> {
  const text = await readIfThere(file);
  if (text === null) return null;
  const kept = parseCheckpoint(text.toString());
  const keys = logs.map(({ key }) => key).filter(({ name }) => name === kept?.origin);
  // Without a key of the log in the policy, nothing can be checked: the log may be retired, and its key removed from
  // the policy.
  if (kept === null || (keys.length > 0 && !(await isSignedBy(kept.note, keys)))) {
    throw new DamagedState(
      `${file} is damaged: it is not a checkpoint that the log has signed. Restore it from a backup. If you have ` +
        "none, move it away: the next run then cannot tell whether the log was changed before.",
    );
  }
  return kept;
}

/**
 * Verifies that the log continues the last checkpoint. @throws Contradiction when the tiles prove that the log was
 * changed; NotAccepted when nothing is proved.
 */
async function verifyContinuation(source: LogSource, before: CheckpointNote, now: CheckpointNote): Promise<void> {
  if (now.size < before.size) {
    throw new NotAccepted(`The log has ${now.size} leaves, and had ${before.size}: an old checkpoint, or a lost part.`);
  }
  if (now.size === before.size && !isEqual(now.root, before.root)) {
    throw new Contradiction(`The log has another root for ${now.size} leaves than before.`);
  }
  const ranges = consistencyRanges(before.size, now.size);
  const old: LeafRange = { start: 0, end: before.size };
  const read = await fetchTiles(source, [...ranges, old], now.size);
  const proof = ranges.map((range) => rootOfRange(range, read));
  if (await verifyConsistency(before.size, before.root, now.size, now.root, proof)) return;
  // The proof does not lead from the old signed root to the new one. If it leads to the new root from the root that the
  // tiles give for the old size, the tiles belong to the new root, and the log has signed two histories.
  if (await verifyConsistency(before.size, rootOfRange(old, read), now.size, now.root, proof)) {
    throw new Contradiction(`The log of ${now.size} leaves does not continue the one of ${before.size} leaves.`);
  }
  throw wrongTiles(source);
}

function wrongTiles({ from }: LogSource): NotAccepted {
  return new NotAccepted(
    `The tiles of ${from} do not lead to its checkpoint's root: they are damaged, or a cache is old.`,
  );
}

/**
 * Copies every bundle that `state` lacks, and replaces each damaged one. Verifies each bundle before it stores it: the
 * tiles of level 1 contain the hash of each full bundle, and together with the last bundle they lead to the
 * checkpoint's root.
 */
async function mirror(source: LogSource, state: string, { size, root }: CheckpointNote): Promise<void> {
  const full = Math.floor(size / TILE_WIDTH);
  const tiles: Uint8Array[] = [];
  for (let index = 0; index * TILE_WIDTH < full; index++)
    tiles.push(await fetchTile(source, { level: 1, index }, size));
  const hashes = Buffer.concat(tiles);
  const last = size % TILE_WIDTH === 0 ? new Uint8Array(0) : await readBundle(source, full, size);
  const tree = new TreeAppender(0, []);
  tree.appendBundles(hashes);
  tree.append(last);
  if (!tree.root().equals(root)) throw wrongTiles(source);
  const copy = openLogSource(state);
  for (let index = 0; index < full; index++) {
    const isWanted = (leaves: Uint8Array) =>
      foldHashes(hashLeaves(leaves)).equals(hashes.subarray(index * HASH_BYTES, (index + 1) * HASH_BYTES));
    const kept = await readBundle(copy, index, size).catch((error) => {
      if (error instanceof NotAccepted) return null;
      throw error;
    });
    if (kept !== null && isWanted(kept)) continue;
    const leaves = await readBundle(source, index, size);
    if (!isWanted(leaves)) throw wrongTiles(source);
    await keepBundle(state, index, leaves);
  }
  if (last.length > 0) await keepBundle(state, full, last);
}

async function keepBundle(state: string, index: number, leaves: Uint8Array): Promise<void> {
  const path = formatTilePath({ level: null, index, width: leaves.length / HASH_BYTES });
  await writeInto(state, path, formatBundle(leaves));
}

/**
 * Writes a file and creates the directories of its path. A web server may serve the directory meanwhile, so the file
 * never appears partially written. A file that already has this content is not touched.
 */
export async function writeInto(directory: string, path: string, bytes: Uint8Array | string): Promise<void> {
  const file = join(directory, path);
  if ((await readIfThere(file))?.equals(Buffer.from(bytes))) return;
  await mkdir(dirname(file), { recursive: true });
  await replaceFile(file, bytes);
}

/**
 * Verifies that the log contains the leaf of a receipt. @throws Contradiction when the tiles prove that the log has
 * another leaf there; NotAccepted when nothing is proved.
 */
async function verifyPresence(source: LogSource, policy: Policy, now: CheckpointNote, receipt: string): Promise<void> {
  const { index, recordHash } = await verifyProof(receipt, policy);
  if (index >= now.size) throw new NotAccepted(`The receipt of leaf ${index} is not in the log of ${now.size} leaves.`);
  const ranges = inclusionRanges(index, now.size);
  const leaf: LeafRange = { start: index, end: index + 1 };
  const read = await fetchTiles(source, [...ranges, leaf], now.size);
  const proof = ranges.map((range) => rootOfRange(range, read));
  const leadsToRoot = async (hash: Uint8Array) => {
    const root = await rootFromInclusion(index, now.size, hash, proof);
    return root !== null && isEqual(root, now.root);
  };
  if (await leadsToRoot(await hashLeaf(recordHash))) return;
  if (await leadsToRoot(rootOfRange(leaf, read))) {
    throw new Contradiction(`Leaf ${index} is not the event of the receipt.`);
  }
  throw wrongTiles(source);
}
