import { decodeBase64, encodeBase64, isEqual, parseDecimal, sha256 } from "./bytes.ts";
import { parseCanonical } from "./canonical.ts";
import { type CheckpointNote, parseCheckpoint } from "./checkpoint.ts";
import { HASH_BYTES, hashLeaf, rootFromInclusion } from "./merkle.ts";
import type { NoteSignature } from "./note.ts";
import { explainDamage, NotAccepted, type Policy, verifyCheckpoint } from "./policy.ts";

const HEADER = "c2sp.org/tlog-proof@v1";
/** Maximum number of hashes in a proof: the height of the largest tree. */
const PROOF_MAX = 63;

/** A proof that a leaf is in the log (C2SP tlog-proof). A receipt has the event's payload as `extra`. */
export interface Proof {
  /** The payload, an object in canonical JSON. Do not trust it before its SHA-256 was compared with the leaf's data. */
  extra: Uint8Array | null;
  index: number;
  hashes: Uint8Array[];
  /** The checkpoint's note, as published by the log. */
  checkpoint: string;
}

export function formatProof({ extra, index, hashes, checkpoint }: Proof): string {
  const lines = [
    HEADER,
    ...(extra === null ? [] : [`extra ${encodeBase64(extra)}`]),
    `index ${index}`,
    ...hashes.map(encodeBase64),
    "",
    checkpoint,
  ];
  return lines.join("\n");
}

/** Parses a proof strictly. @throws NotAccepted with the reason. */
export function parseProof(text: string): Proof & { parsed: CheckpointNote } {
  const damage = explainDamage(text, "receipt");
  if (damage !== null) throw new NotAccepted(damage);
  const proofLength = text.indexOf("\n\n");
  if (proofLength < 0) throw new NotAccepted("The proof has no empty line before its checkpoint.");
  const lines = text.slice(0, proofLength).split("\n");
  if (lines.shift() !== HEADER) throw new NotAccepted(`The first line is not ${HEADER}.`);
  const encoded = lines[0]?.startsWith("extra ") ? (lines.shift() as string).slice("extra ".length) : null;
  const extra = encoded === null ? null : decodeBase64(encoded);
  if (encoded !== null && extra === null) throw new NotAccepted("The line of the payload is not in base64.");
  if (extra !== null && parsePayload(extra) === null)
    throw new NotAccepted("The payload is not an object in canonical JSON.");
  const [, digits = ""] = /^index (\d+)$/.exec(lines.shift() ?? "") ?? [];
  const index = parseDecimal(digits);
  if (index === null) throw new NotAccepted("The line of the index is missing or not a decimal number.");
  const hashes = lines.map(decodeBase64);
  if (hashes.length > PROOF_MAX || !hashes.every((node) => node?.length === HASH_BYTES)) {
    throw new NotAccepted("A line of the proof is not a hash in base64.");
  }
  const checkpoint = text.slice(proofLength + 2);
  const parsed = parseCheckpoint(checkpoint);
  if (parsed === null) throw new NotAccepted("The checkpoint is not well formed.");
  return { extra, index, hashes: hashes as Uint8Array[], checkpoint, parsed };
}

/** Parses the bytes of a payload: an object in canonical JSON. Returns null for any other bytes. */
export function parsePayload(extra: Uint8Array): Record<string, unknown> | null {
  try {
    return parseCanonical(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(extra));
  } catch {
    return null;
  }
}

/** What a valid proof shows. */
export interface Proved {
  /** The data of the leaf. The leaf of an event has the event's `recordHash`. */
  recordHash: Uint8Array;
  index: number;
  origin: string;
  size: number;
  /** The witnesses that have cosigned this checkpoint, and when. */
  cosignatures: NoteSignature[];
}

/**
 * Verifies a proof against the verifier's own policy. Needs no network and no database.
 * @param recordHash the leaf's data. Required for a proof without a payload. For a proof with a payload, the payload's
 * hash must equal it.
 * @param canVerify whether the runtime verifies signatures. See `verifySignatures`.
 * @throws NotAccepted with the reason.
 */
export async function verifyProof(
  text: string,
  policy: Policy,
  recordHash: Uint8Array | null = null,
  canVerify = true,
): Promise<Proved> {
  const { extra, index, hashes, parsed } = parseProof(text);
  const fromExtra = extra && (await sha256(extra));
  const leaf = recordHash ?? fromExtra;
  if (leaf === null) throw new NotAccepted("The proof has no payload, and no recordHash was given.");
  if (fromExtra !== null && !isEqual(fromExtra, leaf))
    throw new NotAccepted("The payload is not that of this recordHash.");
  const cosignatures = await verifyCheckpoint(policy, parsed, canVerify);
  const root = await rootFromInclusion(index, parsed.size, await hashLeaf(leaf), hashes);
  if (root === null) throw new NotAccepted("The proof is not one for this index in a tree of this size.");
  if (!isEqual(parsed.root, root)) throw new NotAccepted("The proof does not lead to the checkpoint's root.");
  return { recordHash: leaf, index, origin: parsed.origin, size: parsed.size, cosignatures };
}
