import { formatCheckpoint, type TreeHead } from "../../src/domain/log/checkpoint.ts";
import { type SignerKey, signNote } from "../../src/domain/log/note.ts";

/** Signs a checkpoint with a log's only key, and returns the note. */
export function signCheckpoint(key: SignerKey, head: TreeHead): string {
  return signNote([key], formatCheckpoint({ origin: key.name, ...head }));
}
