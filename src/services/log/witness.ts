import { z } from "zod";
import { formatCheckpoint, parseCheckpoint, type TreeHead } from "../../domain/log/checkpoint.ts";
import { rootOfRange, verifyConsistency } from "../../domain/log/merkle.ts";
import { cosignNote, isSignedBy, type SignerKey, type VerifierKey } from "../../domain/log/note.ts";
import { lockFile, readIfThere, writeDurably } from "./durable-file.ts";
import { parseRequest } from "./witnesses.ts";

/** The last tree of each log that a witness has cosigned, by origin; roots in base64. */
const stateFile = z.record(z.string(), z.object({ size: z.number().int().min(0), root: z.string() }));

/** The tree of a log that this witness has not seen yet. */
const EMPTY: TreeHead = { size: 0, root: rootOfRange({ start: 0, end: 0 }, () => Buffer.alloc(0)) };

/** A witness's response to `add-checkpoint`. */
interface WitnessResponse {
  status: 200 | 400 | 403 | 404 | 409 | 422;
  text: string;
  contentType: string;
}

/** A witness (C2SP tlog-witness): cosigns a checkpoint only when it continues the last one that it has cosigned. */
export class WitnessServer {
  readonly #key: SignerKey;
  readonly #logs: readonly VerifierKey[];
  readonly #file: string;
  readonly #seen: Map<string, TreeHead>;
  /** Releases the state for another process. */
  readonly close: () => unknown;
  /** The last request. Requests run one at a time, because each must see the tree that the previous one cosigned. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(
    key: SignerKey,
    logs: readonly VerifierKey[],
    file: string,
    seen: Map<string, TreeHead>,
    unlock: () => unknown,
  ) {
    this.#key = key;
    this.#logs = logs;
    this.#file = file;
    this.#seen = seen;
    this.close = unlock;
  }

  /**
   * Opens a witness with the state of a file, and locks the state: two processes could cosign trees that contradict each other. A missing
   * file is an empty state.
   * @throws FileLocked; Error when the file holds no valid state.
   */
  static async open(key: SignerKey, logs: readonly VerifierKey[], file: string): Promise<WitnessServer> {
    const unlock = await lockFile(file, 0);
    try {
      const state = stateFile.parse(JSON.parse(String((await readIfThere(file)) ?? "{}")));
      const heads = Object.entries(state).map(([origin, { size, root }]): [string, TreeHead] => [
        origin,
        { size, root: Buffer.from(root, "base64") },
      ]);
      return new WitnessServer(key, logs, file, new Map(heads), unlock);
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
    const request = parseRequest(body);
    const checkpoint = request === null ? null : parseCheckpoint(request.note);
    if (request === null || checkpoint === null) return refuse(400, "The request is not well formed.");
    const { origin, size, root, note } = checkpoint;
    const keys = this.#logs.filter(({ name }) => name === origin);
    if (keys.length === 0) return refuse(404, "This witness does not know the log.");
    if (!isSignedBy(note, keys)) return refuse(403, "The log has not signed this.");
    if (request.oldSize > size) return refuse(400, "The old size is larger than the checkpoint's.");
    const seen = this.#seen.get(origin) ?? EMPTY;
    if (request.oldSize !== seen.size) {
      return { status: 409, text: `${seen.size}\n`, contentType: "text/x.tlog.size" };
    }
    if (!verifyConsistency(seen.size, seen.root, size, root, request.proof)) {
      return refuse(422, "The proof does not lead from the last tree to this one.");
    }
    const next = new Map(this.#seen).set(origin, { size, root });
    const state = [...next].map(([name, head]) => [name, { size: head.size, root: head.root.toString("base64") }]);
    await writeDurably(this.#file, `${JSON.stringify(Object.fromEntries(state))}\n`);
    this.#seen.set(origin, { size, root });
    return {
      status: 200,
      text: `${cosignNote(this.#key, formatCheckpoint(checkpoint), now)}\n`,
      contentType: "text/plain; charset=utf-8",
    };
  }
}

function refuse(status: WitnessResponse["status"], text: string): WitnessResponse {
  return { status, text: `${text}\n`, contentType: "text/plain; charset=utf-8" };
}
