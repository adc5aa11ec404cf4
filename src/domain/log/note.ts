import { createPrivateKey, createPublicKey, hash, type KeyObject, sign, verify } from "node:crypto";
import { decodeBase64 } from "./base64.ts";

/** What an Ed25519 key signs: the checkpoints of its log, or cosignatures (C2SP signed-note, tlog-cosignature). */
export type KeyUse = "log" | "witness";

const TYPE_OF: Record<KeyUse, number> = { log: 1, witness: 4 };
const SECRET_PREFIX = "PRIVATE+KEY+";
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const SIGNATURE_BYTES = 64;
/** Length of the time that precedes the Ed25519 signature in a cosignature. Bytes. */
const TIME_BYTES = 8;
/** Most signature lines of a note. Limits how much a verifier reads. */
const SIGNATURES_MAX = 100;

/** A key that verifies notes. */
export interface VerifierKey {
  use: KeyUse;
  name: string;
  /** The first four bytes of a hash of name and key. Each signature line contains them. */
  id: Buffer;
  publicKey: KeyObject;
  /** The key as text, a vkey. Each key has exactly one text form. */
  text: string;
}

/** A key that signs notes. */
export interface SignerKey extends VerifierKey {
  privateKey: KeyObject;
}

/** A signature of a note that verified. */
export interface NoteSignature {
  key: VerifierKey;
  /** When a witness saw the note, in seconds since 1970; null for a log's signature. */
  time: number | null;
  /** The signature line, without its newline. */
  line: string;
}

/** Whether a text can be the name of a key: no space, no plus, no control character. */
export function isKeyName(text: string): boolean {
  return text !== "" && text.isWellFormed() && !/[\s+\p{Cc}]/u.test(text);
}

/** Makes a signer from a seed of 32 bytes. */
export function makeSigner(use: KeyUse, name: string, seed: Buffer): SignerKey {
  if (!isKeyName(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a key`);
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: "der", type: "pkcs8" });
  const publicBytes = createPublicKey(privateKey).export({ format: "der", type: "spki" }).subarray(SPKI_PREFIX.length);
  return { ...makeVerifier(use, name, publicBytes), privateKey };
}

/** A line of a key file: `PRIVATE+KEY+<name>+<id>+<base64>`, as Go's note package reads it. */
export function formatSecretKey(use: KeyUse, name: string, seed: Buffer): string {
  const { id } = makeSigner(use, name, seed);
  return `${SECRET_PREFIX}${name}+${id.toString("hex")}+${prefixWithType(use, seed).toString("base64")}`;
}

/** Parses a line of a key file; null when it is not a key for this use. */
export function parseSecretKey(use: KeyUse, text: string): SignerKey | null {
  const [name = "", id, ...rest] = text.trimEnd().replace(SECRET_PREFIX, "").split("+");
  const bytes = decodeBase64(rest.join("+"));
  if (!text.startsWith(SECRET_PREFIX) || !isKeyName(name) || bytes?.length !== 33 || bytes[0] !== TYPE_OF[use])
    return null;
  const signer = makeSigner(use, name, bytes.subarray(1));
  return signer.id.toString("hex") === id ? signer : null;
}

/** Parses a vkey, `<name>+<id>+<base64>`; null when it is not a key for this use. */
export function parseVerifierKey(use: KeyUse, text: string): VerifierKey | null {
  const [name = "", , ...rest] = text.split("+");
  const bytes = decodeBase64(rest.join("+"));
  if (!isKeyName(name) || bytes?.length !== 33 || bytes[0] !== TYPE_OF[use]) return null;
  const key = makeVerifier(use, name, bytes.subarray(1));
  return key.text === text ? key : null;
}

function makeVerifier(use: KeyUse, name: string, publicBytes: Buffer): VerifierKey {
  const key = prefixWithType(use, publicBytes);
  const id = hash("sha256", Buffer.concat([Buffer.from(`${name}\n`), key]), "buffer").subarray(0, 4);
  return {
    use,
    name,
    id,
    publicKey: createPublicKey({ key: Buffer.concat([SPKI_PREFIX, publicBytes]), format: "der", type: "spki" }),
    text: `${name}+${id.toString("hex")}+${key.toString("base64")}`,
  };
}

function prefixWithType(use: KeyUse, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.of(TYPE_OF[use]), bytes]);
}

/** A note: a text and the signature line of each of a log's keys. Ed25519 is deterministic, so the same text gives the same note. */
export function signNote(keys: readonly SignerKey[], text: string): string {
  const lines = keys.map((key) => `${signatureLine(key, sign(null, Buffer.from(text), key.privateKey))}\n`);
  return `${text}\n${lines.join("")}`;
}

/** The signature line of a witness under a note's text. @param time seconds since 1970. */
export function cosignNote(key: SignerKey, text: string, time: number): string {
  const timeBytes = Buffer.alloc(TIME_BYTES);
  timeBytes.writeBigUInt64BE(BigInt(time));
  return signatureLine(key, Buffer.concat([timeBytes, sign(null, cosignedBytes(text, BigInt(time)), key.privateKey)]));
}

function signatureLine(key: VerifierKey, signature: Buffer): string {
  return `— ${key.name} ${Buffer.concat([key.id, signature]).toString("base64")}`;
}

function cosignedBytes(text: string, time: bigint): Buffer {
  return Buffer.from(`cosignature/v1\ntime ${time}\n${text}`);
}

/** A well-formed note. Its signatures are not verified yet. */
export interface ParsedNote {
  /** The signed text, including its final newline. */
  text: string;
  signatures: { name: string; id: Buffer; bytes: Buffer; line: string }[];
}

/** Parses a note strictly (C2SP signed-note); null when the text is not a note. */
export function parseNote(note: string): ParsedNote | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note must not contain them.
  if (!note.isWellFormed() || /[\u0000-\u0009\u000b-\u001f\u007f]/.test(note)) return null;
  const split = note.lastIndexOf("\n\n");
  if (split < 0 || !note.endsWith("\n") || split + 2 === note.length) return null;
  const lines = note.slice(split + 2, -1).split("\n");
  if (lines.length > SIGNATURES_MAX) return null;
  const signatures = lines.map((line) => {
    const [, name = "", encoded = ""] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
    const bytes = decodeBase64(encoded);
    return isKeyName(name) && bytes !== null && bytes.length > 4
      ? { name, id: bytes.subarray(0, 4), bytes: bytes.subarray(4), line }
      : null;
  });
  if (!signatures.every((signature) => signature !== null)) return null;
  return { text: note.slice(0, split + 1), signatures };
}

/**
 * The valid signatures of a note by the given keys, one per key. Signatures by other keys are ignored.
 * @throws InvalidSignature when a signature names one of the keys and is wrong.
 */
export function verifySignatures({ text, signatures }: ParsedNote, keys: readonly VerifierKey[]): NoteSignature[] {
  const verified = new Map<VerifierKey, NoteSignature>();
  for (const { name, id, bytes, line } of signatures) {
    const key = keys.find((candidate) => candidate.name === name && candidate.id.equals(id));
    if (key === undefined) continue;
    const time = key.use === "witness" ? bytes.subarray(0, TIME_BYTES) : null;
    const signature = bytes.subarray(time?.length ?? 0);
    const seconds = time?.length === TIME_BYTES ? time.readBigUInt64BE() : 0n;
    const signed = time === null ? Buffer.from(text) : cosignedBytes(text, seconds);
    if (signature.length !== SIGNATURE_BYTES || !verify(null, signed, key.publicKey, signature)) {
      throw new InvalidSignature(`the signature of ${name} is wrong`);
    }
    verified.set(key, { key, time: time === null ? null : Number(seconds), line });
  }
  return [...verified.values()];
}

/** A signature names a known key, but does not verify. */
export class InvalidSignature extends Error {}

/** Whether at least one of the keys has signed a note and no signature that names one of the keys is wrong. */
export function isSignedBy(note: ParsedNote, keys: readonly VerifierKey[]): boolean {
  try {
    return verifySignatures(note, keys).length > 0;
  } catch (error) {
    if (error instanceof InvalidSignature) return false;
    throw error;
  }
}
