import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { decodeBase64, encodeBase64 } from "./bytes.ts";
import { formatCheckpoint, parseCheckpoint, type TreeHead } from "./checkpoint.ts";
import { DamagedState, lockFile, readIfThere, writeDurably } from "./durable-file.ts";
import { readBody } from "./log-source.ts";
import { HASH_BYTES, verifyConsistency } from "./merkle.ts";
import { cosignNote, isSignedBy, type SignerKey, type VerifierKey } from "./note.ts";
import { rootOfRange } from "./tree.ts";
import { parseRequest } from "./witness-client.ts";

/** Maximum length of a request: a checkpoint with its proof and a hundred signatures. Bytes. */
const REQUEST_MAX = 64_000;
/** The tree of a log that the witness has not seen yet: the empty tree. */
const EMPTY: TreeHead = { size: 0, root: rootOfRange({ start: 0, end: 0 }, () => Buffer.alloc(0)) };

/** A witness's response to `add-checkpoint`. */
interface WitnessResponse {
  status: 200 | 400 | 403 | 404 | 409 | 422;
  text: string;
  contentType: string;
}

interface WitnessContext {
  key: SignerKey;
  logs: readonly VerifierKey[];
  /** The file that contains the state. */
  file: string;
  /** The last tree of each log that the witness has cosigned, by origin. */
  seen: Map<string, TreeHead>;
}

/** A witness (C2SP tlog-witness). Cosigns only checkpoints that continue the last tree that it has cosigned. */
export class WitnessServer {
  readonly #ctx: WitnessContext;
  /** Unlocks the state for other processes. */
  readonly close: () => unknown;
  /** The last request. Requests run one after another, because each must see the tree of the previous one. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(ctx: WitnessContext, unlock: () => unknown) {
    this.#ctx = ctx;
    this.close = unlock;
  }

  /**
   * Opens a witness with the state in a file. Locks the state, because two processes could otherwise cosign trees that
   * contradict each other. A missing file means an empty state.
   * @throws FileLocked; DamagedState when the file contains no valid state.
   */
  static async open(key: SignerKey, logs: readonly VerifierKey[], file: string): Promise<WitnessServer> {
    const unlock = await lockFile(file, 0);
    try {
      const seen = parseState(String((await readIfThere(file)) ?? "{}"));
      if (seen === null) throw new DamagedState(`${file} is damaged. Restore it, or make a witness with a new key.`);
      return new WitnessServer({ key, logs, file, seen }, unlock);
    } catch (error) {
      unlock();
      throw error;
    }
  }

  /** Handles the body of one `add-checkpoint` request. @param now seconds since 1970. */
  addCheckpoint(body: string, now: number): Promise<WitnessResponse> {
    const response = this.#last.then(() => this.#decide(body, now));
    this.#last = response.catch(() => undefined);
    return response;
  }

  async #decide(body: string, now: number): Promise<WitnessResponse> {
    const { key, logs, file, seen } = this.#ctx;
    const request = parseRequest(body);
    const checkpoint = request === null ? null : parseCheckpoint(request.note);
    if (request === null || checkpoint === null) return refuse(400, "The request is not well formed.");
    const { origin, size, root, note } = checkpoint;
    const keys = logs.filter(({ name }) => name === origin);
    if (keys.length === 0) return refuse(404, "This witness does not know the log.");
    if (!(await isSignedBy(note, keys))) return refuse(403, "The log has not signed this.");
    if (request.oldSize > size) return refuse(400, "The old size is larger than the checkpoint's.");
    const last = seen.get(origin) ?? EMPTY;
    if (request.oldSize !== last.size) {
      return { status: 409, text: `${last.size}\n`, contentType: "text/x.tlog.size" };
    }
    if (!(await verifyConsistency(last.size, last.root, size, root, request.proof))) {
      return refuse(422, "The proof does not lead from the last tree to this one.");
    }
    const next = new Map(seen).set(origin, { size, root });
    const state = [...next].map(([name, head]) => [name, { size: head.size, root: encodeBase64(head.root) }]);
    await writeDurably(file, `${JSON.stringify(Object.fromEntries(state))}\n`);
    seen.set(origin, { size, root });
    return {
      status: 200,
      text: `${await cosignNote(key, formatCheckpoint(checkpoint), now)}\n`,
      contentType: "text/plain; charset=utf-8",
    };
  }
}

/** Parses a witness's state: by origin, the last tree that it has cosigned. Null if the text has another form. */
function parseState(text: string): Map<string, TreeHead> | null {
  try {
    const entries = Object.entries<{ size: unknown; root: unknown }>(JSON.parse(text)).map(
      ([origin, { size, root }]) => {
        const bytes = decodeBase64(String(root));
        if (!Number.isSafeInteger(size) || bytes?.length !== HASH_BYTES) throw new Error(origin);
        return [origin, { size: size as number, root: bytes }] as const;
      },
    );
    return new Map(entries);
  } catch {
    return null;
  }
}

function refuse(status: WitnessResponse["status"], text: string): WitnessResponse {
  return { status, text: `${text}\n`, contentType: "text/plain; charset=utf-8" };
}

/** Listens for `POST /add-checkpoint`. */
export async function serveWitness(
  witness: Pick<WitnessServer, "addCheckpoint">,
  { port, host }: { port: number; host: string },
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, async (request, response) => {
    const answer = (status: number, text: string, contentType = "text/plain; charset=utf-8") =>
      response.writeHead(status, { "content-type": contentType }).end(text);
    try {
      if (request.url !== "/add-checkpoint" || request.method !== "POST") return answer(404, "POST /add-checkpoint\n");
      // Keeps the request open even if it is too long. Destroying it would close the connection before the response is
      // sent.
      const body = await readBody(request.iterator({ destroyOnReturn: false }), REQUEST_MAX);
      if (body === null) return answer(400, "The request is too long.\n");
      const now = Math.floor(Date.now() / 1_000);
      const { status, text, contentType } = await witness.addCheckpoint(body.toString(), now);
      answer(status, text, contentType);
    } catch (error) {
      process.stderr.write(`${error}\n`);
      answer(500, "The witness failed.\n");
    }
  });
  server.listen(port, host);
  await once(server, "listening");
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}`,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
