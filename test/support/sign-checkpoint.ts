import { formatCheckpoint, type TreeHead } from "../../packages/tlog/src/checkpoint.ts";
import { type SignerKey, signNote } from "../../packages/tlog/src/note.ts";

/** Signs a checkpoint with a log's only key, and returns the note. */
export function signCheckpoint(key: SignerKey, head: TreeHead): Promise<string> {
  return signNote([key], formatCheckpoint({ origin: key.name, ...head }));
}
