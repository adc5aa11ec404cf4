import { decodeBase64, encodeBase64, parseDecimal } from "./bytes.ts";
import { type Checkpoint, parseCheckpoint } from "./checkpoint.ts";
import { readBody } from "./log-source.ts";
import { parseNote, type VerifierKey, verifySignatures } from "./note.ts";
import type { Policy } from "./policy.ts";

/** Maximum wait for the response of a witness. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Maximum length of a witness's response: a hundred signature lines. Bytes. */
const RESPONSE_MAX = 20_000;

/** A witness of the policy that has a URL. */
export interface Witness {
  key: VerifierKey;
  url: string;
}

/** The result of sending a checkpoint to a witness. */
export type WitnessAnswer =
  /** The witness cosigned the checkpoint. `line` is its signature line. */
  | { kind: "cosigned"; line: string }
  /** The witness says that it has cosigned a larger tree: the database lost leaves, or another process published. */
  | { kind: "ahead"; size: number }
  /**
   * The witness says that it has cosigned another tree of the same size, or rejects the proof. If the witness is right,
   * the database has another log.
   */
  | { kind: "contradicts"; reason: string }
  /** The witness does not know the log yet: it was sent the empty tree, did not cosign it, and named no larger one. */
  | { kind: "knowsNothing" }
  /** The witness did not respond, or its response cannot be used. */
  | { kind: "failed"; reason: string };

/**
 * Asks a witness to cosign a checkpoint (C2SP tlog-witness), with the proof that the checkpoint continues the tree with
 * `oldSize` leaves. If the witness responds with another size, asks once more with the proof from that size. Never
 * throws because of the witness.
 * @param prove returns the proof that the tree with `size` leaves continues the tree with `oldSize` leaves.
 */
export async function askWitness(
  { key, url }: Witness,
  note: string,
  oldSize: number,
  prove: (oldSize: number, size: number) => Promise<readonly Uint8Array[]>,
): Promise<WitnessAnswer> {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === null) throw new Error("a checkpoint of this log does not parse");
  let proofFrom = Math.min(oldSize, checkpoint.size);
  for (let attempt = 1; ; attempt++) {
    const proof = await prove(proofFrom, checkpoint.size);
    const response = await post(url, formatRequest(proofFrom, proof, note)).catch((error: Error) => error);
    if (response instanceof Error) return { kind: "failed", reason: describe(response) };
    const { status, text } = response;
    if (status === 200) return readCosignature(key, checkpoint, note, text);
    const witnessSize = status === 409 ? parseDecimal(text.replace(/\n$/, "")) : null;
    if (witnessSize !== null && witnessSize > checkpoint.size) return { kind: "ahead", size: witnessSize };
    const isRefusal = status >= 400 && status < 500 && status !== 409;
    if (checkpoint.size === 0 && (isRefusal || witnessSize === 0)) return { kind: "knowsNothing" };
    // Both answers mean a contradiction: witnesses of the first version of tlog-witness answer 409 with the
    // checkpoint's own size, and later versions answer 422.
    if (status === 422 || (witnessSize === proofFrom && witnessSize === checkpoint.size)) {
      return { kind: "contradicts", reason: `it answered ${status} for the tree of ${checkpoint.size} leaves` };
    }
    if (witnessSize === null || witnessSize === proofFrom || attempt === 2)
      return { kind: "failed", reason: `it answered ${status}` };
    proofFrom = witnessSize;
  }
}

/** The names of these witnesses in a policy. */
export function namesIn({ witnesses }: Policy, asked: readonly { witness: Witness }[]): Set<string> {
  return new Set(
    witnesses.filter(({ key }) => asked.some(({ witness }) => witness.key === key)).map(({ name }) => name),
  );
}

/** How a witness's answer contradicts a tree of `size` leaves, as a sentence, or null. The answer is no proof. */
export function claimOf(name: string, answer: WitnessAnswer, size: number): string | null {
  if (answer.kind === "contradicts") return `The witness ${name} contradicts the database: ${answer.reason}.`;
  return answer.kind === "ahead" && answer.size > size
    ? `The witness ${name} has seen ${answer.size} leaves, the database has ${size}.`
    : null;
}

function formatRequest(oldSize: number, proof: readonly Uint8Array[], note: string): string {
  return [`old ${oldSize}`, ...proof.map(encodeBase64), "", note].join("\n");
}

/** A request to cosign the checkpoint in `note`, with a proof that it continues the tree of `oldSize` leaves. */
interface WitnessRequest {
  oldSize: number;
  proof: Uint8Array[];
  note: string;
}

/** Parses the body of a request to a witness. Null if it is invalid. */
export function parseRequest(body: string): WitnessRequest | null {
  const headLength = body.indexOf("\n\n");
  const [first = "", ...lines] = body.slice(0, Math.max(0, headLength)).split("\n");
  const oldSize = first.startsWith("old ") ? parseDecimal(first.slice("old ".length)) : null;
  const proof = lines.map(decodeBase64);
  if (oldSize === null || proof.length > 63 || !proof.every((node) => node?.length === 32)) return null;
  return { oldSize, proof: proof as Uint8Array[], note: body.slice(headLength + 2) };
}

async function readCosignature(
  key: VerifierKey,
  { origin }: Checkpoint,
  note: string,
  lines: string,
): Promise<WitnessAnswer> {
  const text = `${note.slice(0, note.indexOf("\n\n") + 2)}${lines}`;
  try {
    const parsed = parseNote(text);
    const [signature] = parsed === null ? [] : await verifySignatures(parsed, [key]);
    if (signature !== undefined) return { kind: "cosigned", line: signature.line };
  } catch (error) {
    return { kind: "failed", reason: `${(error as Error).message} on a checkpoint of ${origin}` };
  }
  return { kind: "failed", reason: "its response has no signature of its key" };
}

async function post(url: string, body: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url.replace(/\/$/, "")}/add-checkpoint`, {
    method: "POST",
    body,
    redirect: "error",
    signal: AbortSignal.timeout(WAIT_MAX_MS),
  });
  const bytes = await readBody(response.body ?? [], RESPONSE_MAX);
  if (bytes === null) throw new Error(`its response is longer than ${RESPONSE_MAX} bytes`);
  return { status: response.status, text: bytes.toString() };
}

function describe(error: Error): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
