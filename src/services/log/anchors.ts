import { open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { type CheckpointNote, parseCheckpoint } from "../../domain/log/checkpoint.ts";
import { isSignedBy, type VerifierKey } from "../../domain/log/note.ts";

/**
 * Reads an anchor: the last checkpoint that this log has signed, kept in a file outside of Postgres. Null when there is no file.
 * @throws Error when the file holds anything other than a checkpoint that one of the keys has signed.
 */
export async function readAnchor(file: string, keys: readonly VerifierKey[]): Promise<CheckpointNote | null> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
  if (text === null) return null;
  const checkpoint = parseCheckpoint(text);
  if (checkpoint === null || !isSignedBy(checkpoint.note, keys)) {
    throw new Error(`the anchor ${file} is not a checkpoint of this log`);
  }
  return checkpoint;
}

/** Replaces an anchor's file, unless it has a larger checkpoint. Once this returns, the new file survives a power failure. */
export async function writeAnchor(file: string, note: string, keys: readonly VerifierKey[]): Promise<void> {
  const before = await readAnchor(file, keys);
  if (before !== null && before.size > (parseCheckpoint(note)?.size ?? 0)) return;
  await writeDurably(file, note);
}

/** Replaces a file atomically: a reader sees the old content or the new content, even after a power failure. */
export async function writeDurably(file: string, text: string): Promise<void> {
  const next = `${file}.${process.pid}.next`;
  const handle = await open(next, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(next, file);
  const directory = await open(dirname(file), "r");
  await directory.sync().finally(() => directory.close());
}
