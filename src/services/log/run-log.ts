import type pg from "pg";
import type { Logger } from "pino";
import type { LogReport } from "../../contract/jobs.ts";
import { findPublished, publishCheckpoint, recordWitnessSizes, selectWitnessSizes } from "../../db/log-checkpoints.ts";
import { findLogTree, type LogTree } from "../../db/log-tree.ts";
import type { DeploymentIdentity } from "../../domain/deployment.ts";
import { formatCheckpoint, parseCheckpoint, type TreeHead } from "../../domain/log/checkpoint.ts";
import { signNote } from "../../domain/log/note.ts";
import { meetsQuorum } from "../../domain/log/policy.ts";
import { readAnchor, writeAnchor } from "./anchors.ts";
import { integrateBatches } from "./integrate-batches.ts";
import type { LogSettings } from "./log-settings.ts";
import { computeRoot } from "./tree-proofs.ts";
import { askWitness, type Witness, type WitnessAnswer } from "./witnesses.ts";

/** How long one pass gives batches their places, before it publishes. Milliseconds. */
const INTEGRATE_MAX_MS = 2_000;
/** A tree that does not change is published again after this time, so that its cosignatures stay young. Milliseconds. */
const PUBLISH_AGAIN_MS = 600_000;

/** Something outside of Postgres contradicts the database, or does not answer. Nothing gets a place, and nothing is signed. */
export class LogRefused extends Error {}

/** What the sequencer needs, and what it remembers between its passes. */
export interface SequencerContext {
  pool: pg.Pool;
  deployment: DeploymentIdentity;
  logSettings: LogSettings;
  log: Logger;
}

/** The sequencer of one process. */
export class Sequencer {
  readonly #ctx: SequencerContext;
  /** The server, timeline and database that all witnesses were last compared with. */
  #comparedWith = "";
  /** The last tree that this process has signed: one more memory outside of Postgres. */
  #signed: TreeHead | null = null;
  /** The anchors as this process has last read or written them. */
  #anchors: LogReport["anchors"] = [];

  constructor(ctx: SequencerContext) {
    this.#ctx = ctx;
  }

  /**
   * One pass: compares the database with every memory outside of it, gives waiting batches their places, and publishes a checkpoint. Any
   * number of processes may run it, and each may die at any point.
   */
  async run(): Promise<LogReport> {
    const startedAt = performance.now();
    const report = { placed: 0, size: 0, published: 0, cosigned: 0, refused: null as string | null };
    try {
      const tree = await this.#compare();
      if (tree !== null) {
        for (let placed = -1; placed !== 0 && performance.now() - startedAt < INTEGRATE_MAX_MS; ) {
          placed = await integrateBatches(this.#ctx);
          report.placed += placed;
        }
        Object.assign(report, await this.#publish());
      }
    } catch (error) {
      if (!(error instanceof LogRefused)) throw error;
      report.refused = error.message;
      this.#ctx.log.error({ reason: error.message }, "the log is refused: nothing is signed until an operator acts");
    }
    return { ...report, anchors: this.#anchors, durationMs: Math.round(performance.now() - startedAt) };
  }

  /**
   * Compares the tree with the anchors and, on a database that this process has not compared before, with the witnesses.
   * @returns null when there is no log.
   * @throws LogRefused
   */
  async #compare(): Promise<LogTree | null> {
    const { pool, logSettings, deployment } = this.#ctx;
    const { origin, keys, anchors } = logSettings;
    // The anchors first: another process may advance both, the tree before the anchor.
    const found = await Promise.all(anchors.map((file) => readAnchor(file, keys))).catch((error: Error) => {
      throw new LogRefused(error.message);
    });
    this.#anchors = anchors.map((file, at) => ({ file, size: found[at]?.size ?? null }));
    const tree = await findLogTree(pool);
    const known = found.filter((anchor) => anchor !== null);
    const remembered: TreeHead[] = this.#signed === null ? known : [...known, this.#signed];
    if (tree === null && known.length === 0) return null;
    if (tree === null) throw new LogRefused("The database has no log, but an anchor has one.");
    if (tree.origin !== origin) throw new LogRefused(`The database has the log ${tree.origin}, not ${origin}.`);
    for (const { size, root } of remembered) {
      if (size > tree.size) {
        throw new LogRefused(`An anchor has ${size} leaves, the database ${tree.size}: it has lost a part of the log.`);
      }
      if (!root.equals(await computeRoot(pool, size))) {
        throw new LogRefused(`An anchor has another root for ${size} leaves than the database.`);
      }
    }
    const isNew = this.#comparedWith !== deployment.origin;
    if (isNew || known.length < anchors.length) {
      const agreed = await this.#compareWithWitnesses(tree);
      if (remembered.length === 0 && agreed === 0 && anchors.length > 0) {
        throw new LogRefused("No anchor and no witness remembers the log. See: voucherctl log init --accept-anchor");
      }
      this.#comparedWith = deployment.origin;
    }
    return tree;
  }

  /** @returns how many witnesses know the log and agree. @throws LogRefused when one has seen more, or something else. */
  async #compareWithWitnesses(tree: LogTree): Promise<number> {
    const published = await findPublished(this.#ctx.pool);
    if (published === null) return 0;
    const asked = await this.#ask(published.note.slice(0, published.note.indexOf("\n\n") + 1), tree);
    return asked.filter(({ answer }) => answer.kind === "cosigned" || answer.kind === "ahead").length;
  }

  /**
   * Asks all witnesses for their cosignatures of a checkpoint's text.
   * @throws LogRefused when one has cosigned what is not in the tree.
   */
  async #ask(text: string, tree: LogTree): Promise<{ witness: Witness; answer: WitnessAnswer }[]> {
    const { pool, logSettings, log } = this.#ctx;
    const { witnesses, keys } = logSettings;
    const note = `${text}\n${keys.map((key) => `${signNote(key, text)}\n`).join("")}`;
    const sizes = await selectWitnessSizes(
      pool,
      witnesses.map(({ key }) => key.name),
    );
    const asked = await Promise.all(
      witnesses.map(async (witness) => ({
        witness,
        answer: await askWitness(pool, witness, note, sizes.get(witness.key.name) ?? 0),
      })),
    );
    const size = parseCheckpoint(note)?.size ?? 0;
    for (const { witness, answer } of asked) {
      const { name } = witness.key;
      if (answer.kind === "contradicts")
        throw new LogRefused(`The witness ${name} contradicts the database: ${answer.reason}.`);
      if (answer.kind === "ahead" && answer.size > tree.size) {
        // Another process may have published meanwhile.
        const now = await findLogTree(pool);
        if (answer.size > (now?.size ?? 0)) {
          throw new LogRefused(
            `The witness ${name} has seen ${answer.size} leaves, the database has ${now?.size ?? 0}.`,
          );
        }
      }
      if (answer.kind === "failed") log.warn({ witness: name, reason: answer.reason }, "a witness did not cosign");
    }
    const cosigned = asked.filter(({ answer }) => answer.kind === "cosigned");
    await recordWitnessSizes(pool, new Map(cosigned.map(({ witness }) => [witness.key.name, size])));
    return asked;
  }

  /** Signs the tree, writes the anchors, collects cosignatures and, if they are enough, serves the checkpoint. */
  async #publish(): Promise<Pick<LogReport, "size" | "published" | "cosigned">> {
    const { pool, logSettings, log } = this.#ctx;
    const { keys, anchors, policy, policyText } = logSettings;
    const [tree, published] = [await findLogTree(pool), await findPublished(pool)];
    if (tree === null) throw new Error("the log has disappeared");
    const isNews = published === null || tree.size > published.size || published.policy !== policyText;
    if (!isNews && published.ageMs < PUBLISH_AGAIN_MS) {
      return { size: tree.size, published: published.size, cosigned: 0 };
    }
    const text = formatCheckpoint(tree);
    const signed = `${text}\n${keys.map((key) => `${signNote(key, text)}\n`).join("")}`;
    this.#signed = tree;
    for (const file of anchors) await writeAnchor(file, signed, keys);
    this.#anchors = anchors.map((file) => ({ file, size: tree.size }));
    const asked = await this.#ask(text, tree);
    const cosigned = asked.flatMap(({ witness, answer }) => (answer.kind === "cosigned" ? [{ witness, answer }] : []));
    const names = policy.witnesses.filter(({ key }) => cosigned.some(({ witness }) => witness.key === key));
    const counts = { size: tree.size, cosigned: cosigned.length };
    if (!meetsQuorum(policy, new Set(names.map(({ name }) => name)))) {
      log.warn(counts, "too few witnesses cosigned: the last checkpoint stays");
      return { ...counts, published: published?.size ?? 0 };
    }
    const note = `${signed}${cosigned.map(({ answer }) => `${answer.line}\n`).join("")}`;
    const isServed = await publishCheckpoint(pool, { size: tree.size, root: tree.root, note, policy: policyText });
    return { ...counts, published: isServed ? tree.size : (published?.size ?? 0) };
  }
}
