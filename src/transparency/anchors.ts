import { type CheckpointNote, parseCheckpoint } from "#tlog/checkpoint.ts";
import { DamagedState, lockFile, readIfThere, writeDurably } from "#tlog/durable-file.ts";
import { isSignedBy, type VerifierKey } from "#tlog/note.ts";

/** Maximum wait for another process that writes the same anchor. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/**
 * Reads an anchor: a file outside Postgres with the last checkpoint that this log has signed. Null if the file does not
 * exist.
 * @param keys null to accept any signature, when the keys are unknown.
 * @throws DamagedState if the file contains anything other than a checkpoint signed by one of the keys.
 */
export async function readAnchor(file: string, keys: readonly VerifierKey[] | null): Promise<CheckpointNote | null> {
  const text = await readIfThere(file);
  if (text === null) return null;
  const checkpoint = parseCheckpoint(text.toString());
  if (checkpoint === null || (keys !== null && !(await isSignedBy(checkpoint.note, keys)))) {
    throw new DamagedState(`the anchor ${file} is not a checkpoint of this log`);
  }
  return checkpoint;
}

/**
 * Replaces an anchor's file, unless the file has a larger checkpoint. When this returns, the new file survives a power
 * failure. A lock makes processes that share the file write it one after another, so its checkpoint never becomes
 * smaller.
 * @throws FileLocked; Error when the file has another tree of the same size, which proves that two different trees were
 * signed.
 */
export async function writeAnchor(file: string, note: string, keys: readonly VerifierKey[]): Promise<void> {
  const unlock = await lockFile(file, LOCK_WAIT_MS);
  try {
    const before = await readAnchor(file, keys);
    const next = parseCheckpoint(note);
    if (next === null) throw new Error("an anchor keeps checkpoints only");
    if (before !== null && before.size > next.size) return;
    if (before?.size === next.size && !Buffer.from(before.root).equals(next.root)) {
      throw new Error(`it has another tree of ${next.size} leaves`);
    }
    await writeDurably(file, note);
  } finally {
    unlock();
  }
}
