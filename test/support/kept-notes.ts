import { existsSync, readFileSync } from "node:fs";
import type pg from "pg";
import { isEqual } from "#tlog/bytes.ts";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { verifyConsistency } from "#tlog/merkle.ts";
import { proveConsistency } from "../../src/transparency/tree-proofs.ts";

/** Every checkpoint of a log that a test has seen. No two may contradict each other. */
export class KeptNotes {
  readonly #roots = new Map<number, Uint8Array>();
  readonly #problems: string[] = [];

  /** The number of different sizes. */
  get count(): number {
    return this.#roots.size;
  }

  keep(note: string): void {
    const checkpoint = parseCheckpoint(note);
    if (checkpoint === null) throw new Error(`this is no checkpoint:\n${note}`);
    const { size, root } = checkpoint;
    const before = this.#roots.get(size);
    if (before !== undefined && !isEqual(before, root)) this.#problems.push(`two roots for ${size} leaves`);
    this.#roots.set(size, root);
  }

  /** Records an anchor's checkpoint, if there is one. */
  keepAnchor(file: string): void {
    if (existsSync(file)) this.keep(readFileSync(file, "utf8"));
  }

  /** Finds contradictions: two roots for one size, or a checkpoint that does not continue the previous one. */
  async findProblems(db: pg.Pool): Promise<string[]> {
    const problems = [...this.#problems];
    const sizes = [...this.#roots.keys()].sort((one, other) => one - other);
    for (const [at, size] of sizes.entries()) {
      const old = sizes[at - 1] ?? 0;
      const [oldRoot, root] = [this.#roots.get(old) ?? Buffer.alloc(0), this.#roots.get(size) ?? Buffer.alloc(0)];
      const proof = await proveConsistency(db, old, size).catch(() => null);
      if (proof === null) problems.push(`the database has no tree of ${size} leaves`);
      else if (!(await verifyConsistency(old, oldRoot, size, root, proof)))
        problems.push(`${size} leaves do not continue ${old}`);
    }
    return problems;
  }
}
