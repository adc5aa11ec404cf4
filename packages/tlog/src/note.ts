import { concat, decodeBase64, encodeBase64, encodeHex, encodeUtf8, isEqual, sha256 } from "./bytes.ts";

/**
 * The use of an Ed25519 key: it signs the checkpoints of its log, or cosignatures (C2SP signed-note, tlog-cosignature).
 */
export type KeyUse = "log" | "witness";

const TYPE_OF: Record<KeyUse, number> = { log: 1, witness: 4 };
const SECRET_PREFIX = "PRIVATE+KEY+";
/** The bytes that precede an Ed25519 seed in PKCS #8. Web Crypto accepts a private key only in this format. */
const PKCS8_PREFIX = Uint8Array.of(0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20);
const SIGNATURE_BYTES = 64;
/** Length of the time before the Ed25519 signature in a cosignature. Bytes. */
const TIME_BYTES = 8;
/** The last second of the year 9999, because later dates have no usual text form. */
const TIME_MAX = 253_402_300_799n;
/** Maximum number of signature lines in a note, which limits the work of a verifier. */
const SIGNATURES_MAX = 100;

/** A key that verifies notes. */
export interface VerifierKey {
  use: KeyUse;
  name: string;
  /** The first four bytes of a hash of name and key. Each signature line contains this id. */
  id: Uint8Array;
  /** The Ed25519 public key, 32 bytes. */
  publicKey: Uint8Array<ArrayBuffer>;
  /** The key as a text, called vkey. Each key has exactly one such text. */
  text: string;
}

/** A key that signs notes. */
export interface SignerKey extends VerifierKey {
  privateKey: Awaited<ReturnType<typeof crypto.subtle.importKey>>;
}

/** A valid signature of a note. */
export interface NoteSignature {
  key: VerifierKey;
  /** When a witness saw the note, in seconds since 1970. Null for a log's signature. */
  time: number | null;
  /** The signature line, without its newline. */
  line: string;
}

/** Whether a text can be the name of a key, which has no space, no plus and no control character. */
export function isKeyName(text: string): boolean {
  return text !== "" && text.isWellFormed() && !/[\s+\p{Cc}]/u.test(text);
}

/** Makes a signer from a seed of 32 bytes. */
export async function makeSigner(use: KeyUse, name: string, seed: Uint8Array): Promise<SignerKey> {
  if (!isKeyName(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a key`);
  const pkcs8 = concat([PKCS8_PREFIX, seed]);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, { name: "Ed25519" }, true, ["sign"]);
  const { x = "" } = await crypto.subtle.exportKey("jwk", privateKey);
  // Web Crypto writes base64url.
  const publicKey = decodeBase64(`${x.replaceAll("-", "+").replaceAll("_", "/")}=`) as Uint8Array<ArrayBuffer>;
  return { ...(await makeVerifier(use, name, publicKey)), privateKey };
}

/** A line of a key file: `PRIVATE+KEY+<name>+<id>+<base64>`, which Go's note package can read. */
export async function formatSecretKey(use: KeyUse, name: string, seed: Uint8Array): Promise<string> {
  const { id } = await makeSigner(use, name, seed);
  return `${SECRET_PREFIX}${name}+${encodeHex(id)}+${encodeBase64(prefixWithType(use, seed))}`;
}

/** Parses a line of a key file. Null if it is not a key for this use. */
export async function parseSecretKey(use: KeyUse, text: string): Promise<SignerKey | null> {
  const [name = "", id, ...rest] = text.trimEnd().replace(SECRET_PREFIX, "").split("+");
  const seed = text.startsWith(SECRET_PREFIX) && isKeyName(name) ? parseTyped(use, rest.join("+")) : null;
  const signer = seed && (await makeSigner(use, name, seed));
  return signer !== null && encodeHex(signer.id) === id ? signer : null;
}

/** Parses a vkey, `<name>+<id>+<base64>`. Null if it is not a key for this use. */
export async function parseVerifierKey(use: KeyUse, text: string): Promise<VerifierKey | null> {
  const [name = "", , ...rest] = text.split("+");
  const publicKey = isKeyName(name) ? parseTyped(use, rest.join("+")) : null;
  const key = publicKey && (await makeVerifier(use, name, publicKey));
  return key?.text === text ? key : null;
}

async function makeVerifier(use: KeyUse, name: string, publicKey: Uint8Array<ArrayBuffer>): Promise<VerifierKey> {
  const key = prefixWithType(use, publicKey);
  const id = (await sha256(encodeUtf8(`${name}\n`), key)).subarray(0, 4);
  return { use, name, id, publicKey, text: `${name}+${encodeHex(id)}+${encodeBase64(key)}` };
}

function prefixWithType(use: KeyUse, bytes: Uint8Array): Uint8Array {
  return concat([Uint8Array.of(TYPE_OF[use]), bytes]);
}

/** The 32 bytes of a key or a seed, after the byte that names its use. Null for other text. */
function parseTyped(use: KeyUse, encoded: string): Uint8Array<ArrayBuffer> | null {
  const bytes = decodeBase64(encoded);
  return bytes?.length === 33 && bytes[0] === TYPE_OF[use] ? bytes.subarray(1) : null;
}

/**
 * A text with a signature line for each of a log's keys. Ed25519 is deterministic, so signing a text again gives the
 * same note.
 */
export async function signNote(keys: readonly SignerKey[], text: string): Promise<string> {
  const lines = await Promise.all(keys.map(async (key) => signatureLine(key, await sign(key, text))));
  return `${text}\n${lines.map((line) => `${line}\n`).join("")}`;
}

/** The signature line of a witness under a note's text. @param time seconds since 1970. */
export async function cosignNote(key: SignerKey, text: string, time: number): Promise<string> {
  const timeBytes = new Uint8Array(TIME_BYTES);
  new DataView(timeBytes.buffer).setBigUint64(0, BigInt(time));
  return signatureLine(key, concat([timeBytes, await sign(key, cosignedText(text, BigInt(time)))]));
}

async function sign({ privateKey }: SignerKey, text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.sign({ name: "Ed25519" }, privateKey, encodeUtf8(text)));
}

function signatureLine(key: VerifierKey, signature: Uint8Array): string {
  return `— ${key.name} ${encodeBase64(concat([key.id, signature]))}`;
}

function cosignedText(text: string, time: bigint): string {
  return `cosignature/v1\ntime ${time}\n${text}`;
}

export interface ParsedNote {
  /** The signed text, including its final newline. */
  text: string;
  signatures: { name: string; id: Uint8Array; bytes: Uint8Array<ArrayBuffer>; line: string }[];
}

/** Parses a note strictly (C2SP signed-note). Null if the text is not a note. */
export function parseNote(note: string): ParsedNote | null {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a note must not contain them.
  if (!note.isWellFormed() || /[\u0000-\u0009\u000b-\u001f\u007f]/.test(note)) return null;
  const split = note.lastIndexOf("\n\n");
  if (split < 0 || !note.endsWith("\n")) return null;
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
 * Whether this runtime verifies Ed25519: Node, Chrome and Edge since version 137, Firefox since 129, Safari since 17.
 */
export async function hasEd25519(): Promise<boolean> {
  // Tries to import the curve's base point, which is a valid public key.
  const key = new Uint8Array(32).fill(0x66).with(0, 0x58);
  return crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]).then(
    () => true,
    () => false,
  );
}

/**
 * The valid signatures of a note by the given keys, one per key. Signatures by other keys are ignored.
 * @param canVerify false if {@link hasEd25519} is false. Then only the form of the signatures is checked.
 * @throws InvalidSignature when a signature names one of the keys and is wrong.
 */
export async function verifySignatures(
  { text, signatures }: ParsedNote,
  keys: readonly VerifierKey[],
  canVerify = true,
): Promise<NoteSignature[]> {
  const verified = new Map<VerifierKey, NoteSignature>();
  for (const { name, id, bytes, line } of signatures) {
    const key = keys.find((candidate) => candidate.name === name && isEqual(candidate.id, id));
    if (key === undefined) continue;
    const signature = bytes.subarray(key.use === "witness" ? TIME_BYTES : 0);
    const isWhole = signature.length === SIGNATURE_BYTES;
    const time = isWhole && key.use === "witness" ? new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0) : null;
    const signed = time === null ? text : cosignedText(text, time);
    if (!isWhole || (time ?? 0n) > TIME_MAX || (canVerify && !(await isValid(key, signature, signed)))) {
      throw new InvalidSignature(`the signature of ${name} is wrong`);
    }
    verified.set(key, { key, time: time === null ? null : Number(time), line });
  }
  return [...verified.values()];
}

async function isValid({ publicKey }: VerifierKey, signature: Uint8Array<ArrayBuffer>, text: string): Promise<boolean> {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, key, signature, encodeUtf8(text));
  } catch {
    // The key's bytes are not a point of the curve.
    return false;
  }
}

/** A signature names a known key but is invalid. */
export class InvalidSignature extends Error {}

/** Whether at least one of the keys has signed a note, and no signature that names one of the keys is wrong. */
export async function isSignedBy(note: ParsedNote, keys: readonly VerifierKey[]): Promise<boolean> {
  try {
    return (await verifySignatures(note, keys)).length > 0;
  } catch (error) {
    if (error instanceof InvalidSignature) return false;
    throw error;
  }
}
