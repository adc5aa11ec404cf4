import { formatCheckpoint, type TreeHead } from "#tlog/checkpoint.ts";
import { type SignerKey, signNote } from "#tlog/note.ts";

/** Signs a checkpoint with a log's only key, and returns the note. */
export function signCheckpoint(key: SignerKey, head: TreeHead): Promise<string> {
  return signNote([key], formatCheckpoint({ origin: key.name, ...head }));
}
