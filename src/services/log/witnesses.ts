import type { Queryable } from "../../db/pool.ts";
import { decodeBase64, parseDecimal } from "../../domain/log/base64.ts";
import { type Checkpoint, parseCheckpoint } from "../../domain/log/checkpoint.ts";
import { parseNote, type VerifierKey, verifySignatures } from "../../domain/log/note.ts";
import { proveConsistency } from "./tree-proofs.ts";

/** Longest wait for a witness. Milliseconds. */
const WAIT_MAX_MS = 1_500;
/** Longest response of a witness that is read: a hundred signature lines. Bytes. */
const RESPONSE_MAX = 20_000;

/** A witness that the policy names with an address. */
export interface Witness {
  key: VerifierKey;
  url: string;
}

/** What a witness has done with a checkpoint. */
export type WitnessAnswer =
  /** It has cosigned it: its signature line. */
  | { kind: "cosigned"; line: string }
  /** It has cosigned a larger tree of this log: this database has lost a part of the log. */
  | { kind: "ahead"; size: number }
  /** It has cosigned another tree of this size, or has found the proof wrong: this database has another log. */
  | { kind: "contradicts"; reason: string }
  /** It does not cosign an empty tree, and has cosigned no larger one. */
  | { kind: "knowsNothing" }
  | { kind: "failed"; reason: string };

/**
 * Asks a witness to cosign a checkpoint (C2SP tlog-witness), with the proof that it continues the tree of `oldSize`; when the witness
 * names another size, with the proof from that one. Never throws because of what the witness does.
 */
export async function askWitness(
  db: Queryable,
  { key, url }: Witness,
  note: string,
  oldSize: number,
): Promise<WitnessAnswer> {
  const checkpoint = parseCheckpoint(note);
  if (checkpoint === null) throw new Error("a checkpoint of this log does not parse");
  let from = Math.min(oldSize, checkpoint.size);
  for (let attempt = 1; ; attempt++) {
    const proof = await proveConsistency(db, from, checkpoint.size);
    const response = await post(url, formatRequest(from, proof, note)).catch((error: Error) => error);
    if (response instanceof Error) return { kind: "failed", reason: describe(response) };
    const { status, text } = response;
    if (status === 200) return readCosignature(key, checkpoint, note, text);
    const told = status === 409 ? parseDecimal(text.replace(/\n$/, "")) : null;
    if (told !== null && told > checkpoint.size) return { kind: "ahead", size: told };
    const isRefusal = status >= 400 && status < 500 && status !== 409;
    if (checkpoint.size === 0 && (isRefusal || told === 0)) return { kind: "knowsNothing" };
    if (status === 422 || (told === from && told === checkpoint.size)) {
      return { kind: "contradicts", reason: `it answered ${status} for the tree of ${checkpoint.size} leaves` };
    }
    if (told === null || told === from || attempt === 2) return { kind: "failed", reason: `it answered ${status}` };
    from = told;
  }
}

/** The body of a request to a witness. */
function formatRequest(oldSize: number, proof: readonly Buffer[], note: string): string {
  return [`old ${oldSize}`, ...proof.map((node) => node.toString("base64")), "", note].join("\n");
}

/** What a witness is asked. */
export interface WitnessRequest {
  oldSize: number;
  proof: Buffer[];
  note: string;
}

/** Parses the body of a request to a witness, strictly; null when it is not valid. */
export function parseRequest(body: string): WitnessRequest | null {
  const end = body.indexOf("\n\n");
  const [first = "", ...lines] = body.slice(0, Math.max(0, end)).split("\n");
  const oldSize = first.startsWith("old ") ? parseDecimal(first.slice("old ".length)) : null;
  const proof = lines.map(decodeBase64);
  if (oldSize === null || proof.length > 63 || !proof.every((node) => node?.length === 32)) return null;
  return { oldSize, proof: proof as Buffer[], note: body.slice(end + 2) };
}

function readCosignature(key: VerifierKey, { origin }: Checkpoint, note: string, lines: string): WitnessAnswer {
  const text = `${note.slice(0, note.indexOf("\n\n") + 2)}${lines}`;
  try {
    const parsed = parseNote(text);
    const [signature] = parsed === null ? [] : verifySignatures(parsed, [key]);
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
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > RESPONSE_MAX) throw new Error(`its response is longer than ${RESPONSE_MAX} bytes`);
  }
  return { status: response.status, text };
}

function describe(error: Error): string {
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
