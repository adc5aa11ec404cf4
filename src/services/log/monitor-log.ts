import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type CheckpointNote, parseCheckpoint } from "../../domain/log/checkpoint.ts";
import { consistencyRanges, HASH_BYTES, rootOfRange, TILE_WIDTH, verifyConsistency } from "../../domain/log/merkle.ts";
import { NotAccepted, type Policy, verifyCheckpoint } from "../../domain/log/policy.ts";
import { verifyProof } from "../../domain/log/receipt.ts";
import { formatTilePath, TreeAppender, tileWidth } from "../../domain/log/tiles.ts";
import { readIfThere, writeDurably } from "./durable-file.ts";
import { fetchTiles, type LogSource, openLogSource, readBundle } from "./log-source.ts";
import { formatBundle } from "./read-log.ts";

interface MonitorOptions {
  source: LogSource;
  policy: Policy;
  /** The directory of the last checkpoint and, with `keep`, of every bundle. */
  state: string;
  /** Whether to copy every bundle. */
  keep: boolean;
  /** Receipts of events that must be in the log. */
  receipts: readonly string[];
  /** Origin of a retired log that this log continues, if the last run saw the retired log. */
  retired?: string | undefined;
}

interface Monitored {
  origin: string;
  size: number;
  /** The size at the last run; 0 at the first run. */
  before: number;
  /** The number of verified receipts. */
  receipts: number;
}

/**
 * Verifies that a served log's checkpoint is signed and cosigned as the policy requires, continues the checkpoint of the last run, and contains
 * the event of every given receipt. Keeps the checkpoint for the next run.
 * @throws NotAccepted with the reason. A checkpoint that satisfies the policy but fails another check is kept in `state` as `refused-<size>`.
 */
export async function monitorLog(options: MonitorOptions): Promise<Monitored> {
  const { source, policy, state, keep, receipts, retired } = options;
  const note = (await source.read("checkpoint"))?.toString() ?? "";
  const served = parseCheckpoint(note);
  if (served === null) throw new NotAccepted(`${source.from} serves no checkpoint.`);
  verifyCheckpoint(policy, served);
  await mkdir(state, { recursive: true });
  const file = join(state, "checkpoint");
  const before = parseCheckpoint((await readIfThere(file))?.toString() ?? "");
  try {
    if (before !== null && before.origin !== served.origin && before.origin !== retired) {
      throw new NotAccepted(
        `The log is now ${served.origin}, and was ${before.origin}. If that one was retired, see --retired.`,
      );
    }
    if (before !== null) await verifyContinuation(source, before, served);
    if (keep) await mirror(source, state, served);
    for (const receipt of receipts) await verifyPresence(source, policy, served, receipt);
  } catch (error) {
    if (error instanceof NotAccepted) await writeFile(join(state, `refused-${served.size}`), note);
    throw error;
  }
  await writeDurably(file, note);
  return { origin: served.origin, size: served.size, before: before?.size ?? 0, receipts: receipts.length };
}

async function verifyContinuation(source: LogSource, before: CheckpointNote, now: CheckpointNote): Promise<void> {
  if (now.size < before.size) {
    throw new NotAccepted(`The log has ${now.size} leaves, and had ${before.size}: an old checkpoint, or a lost part.`);
  }
  const ranges = consistencyRanges(before.size, now.size);
  const read = await fetchTiles(source, ranges, now.size);
  const proof = ranges.map((range) => rootOfRange(range, read));
  if (!verifyConsistency(before.size, before.root, now.size, now.root, proof)) {
    throw new NotAccepted(`The log of ${now.size} leaves does not continue the one of ${before.size} leaves.`);
  }
}

/** Copies every bundle that is missing in `state`, and recomputes the root from all bundles. */
async function mirror(source: LogSource, state: string, { size, root }: CheckpointNote): Promise<void> {
  const copy = openLogSource(state);
  const tree = new TreeAppender(0, []);
  for (let index = 0; index * TILE_WIDTH < size; index++) {
    const path = formatTilePath({ level: null, index, width: tileWidth({ level: 0, index }, size) });
    const isCopied = (await copy.read(path)) !== null;
    const leaves = await readBundle(isCopied ? copy : source, index, size);
    tree.append(leaves);
    tree.takeGrown();
    if (!isCopied) await writeInto(state, path, formatBundle(leaves));
  }
  if (!tree.root().equals(root)) throw new NotAccepted("The bundles do not lead to the checkpoint's root.");
}

/** Writes a file and creates the directories of its path. */
export async function writeInto(directory: string, path: string, bytes: Buffer | string): Promise<void> {
  const file = join(directory, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, bytes);
}

async function verifyPresence(source: LogSource, policy: Policy, now: CheckpointNote, receipt: string): Promise<void> {
  const { index, recordHash } = verifyProof(receipt, policy);
  if (index >= now.size) throw new NotAccepted(`The receipt of leaf ${index} is not in the log of ${now.size} leaves.`);
  const leaves = await readBundle(source, Math.floor(index / TILE_WIDTH), now.size);
  const offset = (index % TILE_WIDTH) * HASH_BYTES;
  if (!recordHash.equals(leaves.subarray(offset, offset + HASH_BYTES))) {
    throw new NotAccepted(`Leaf ${index} is not the event of the receipt.`);
  }
}
