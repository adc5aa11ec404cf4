import { decodeBase64, encodeBase64, parseDecimal } from "./bytes.ts";
import { HASH_BYTES } from "./merkle.ts";
import { type ParsedNote, parseNote } from "./note.ts";

/** The size and root hash of a tree. */
export interface TreeHead {
  size: number;
  root: Uint8Array;
}

/** What a log signs about its tree (C2SP tlog-checkpoint). */
export interface Checkpoint extends TreeHead {
  /** The log's name, which is also the name of its key. */
  origin: string;
}

/** A checkpoint with the signed note that contains it. */
export interface CheckpointNote extends Checkpoint {
  note: ParsedNote;
}

/** The text that the log signs. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${encodeBase64(root)}\n`;
}

/** Parses a note with a checkpoint. Null if it is invalid. Ignores lines after the root, but none may be empty. */
export function parseCheckpoint(text: string): CheckpointNote | null {
  const note = parseNote(text);
  if (note === null) return null;
  const [origin = "", sizeText = "", rootText = "", ...others] = note.text.slice(0, -1).split("\n");
  const [size, root] = [parseDecimal(sizeText), decodeBase64(rootText)];
  if (origin === "" || size === null || root?.length !== HASH_BYTES) return null;
  return others.includes("") ? null : { note, origin, size, root };
}
