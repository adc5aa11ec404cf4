import { formatCheckpoint, type TreeHead } from "../../src/domain/log/checkpoint.ts";
import { type SignerKey, signNote } from "../../src/domain/log/note.ts";

/** A checkpoint that a log with one key signs: a note. */
export function signCheckpoint(key: SignerKey, head: TreeHead): string {
  return signNote([key], formatCheckpoint({ origin: key.name, ...head }));
}
