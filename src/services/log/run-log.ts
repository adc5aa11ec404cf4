import type pg from "pg";
import type { Logger } from "pino";
import type { LogReport } from "../../contract/jobs.ts";
import { findPublished, publishCheckpoint, recordWitnessSizes, selectWitnessSizes } from "../../db/log-checkpoints.ts";
import { findLogTree, type LogTree } from "../../db/log-tree.ts";
import { formatCheckpoint, parseCheckpoint, type TreeHead } from "../../domain/log/checkpoint.ts";
import { isSignedBy, signNote } from "../../domain/log/note.ts";
import { meetsQuorum } from "../../domain/log/policy.ts";
import { readAnchor, writeAnchor } from "./anchors.ts";
import { assertCompared, integrateBatches } from "./integrate-batches.ts";
import type { LogSettings } from "./log-settings.ts";
import { computeRoot } from "./tree-proofs.ts";
import { askWitness, claimOf, namesIn, type Witness, type WitnessAnswer } from "./witnesses.ts";

/** How long one pass may give batches their places before it publishes. Milliseconds. */
const INTEGRATE_MAX_MS = 2_000;
/** An unchanged tree is published again after this time, so that its cosignatures stay recent. Milliseconds. */
const PUBLISH_AGAIN_MS = 600_000;

/** An anchor, a witness or the settings contradict the database, or too few witnesses respond. The pass stops and serves no new checkpoint. */
class LogRefused extends Error {}

/** What the sequencer needs. */
interface SequencerContext {
  pool: pg.Pool;
  logSettings: LogSettings;
  log: Logger;
}

/** Appends batches of leaves to the log's tree and publishes checkpoints. Each process of the queue `log` has one. */
export class Sequencer {
  readonly #ctx: SequencerContext;
  /** The database server that was last compared with the witnesses. */
  #comparedWith: string | null = null;
  /** The last tree that this process has signed. In memory, so that a change in Postgres cannot change it. */
  #signed: TreeHead | null = null;
  /** The anchors as this process has last read or written them. */
  #anchors: LogReport["anchors"] = [];
  /** Witnesses that contradicted the log without a proof when they were last asked. */
  #claims = 0;

  constructor(ctx: SequencerContext) {
    this.#ctx = ctx;
  }

  /**
   * One pass: compares the database with the anchors and witnesses, gives waiting batches their places, and publishes a checkpoint. Any
   * number of processes may run it, and each may die at any point.
   */
  async run(): Promise<LogReport> {
    const startedAt = performance.now();
    const report = { placed: 0, size: 0, published: 0, cosigned: 0, refused: null as string | null };
    try {
      const tree = await this.#compare();
      if (tree !== null) {
        for (let placed = -1; placed !== 0 && performance.now() - startedAt < INTEGRATE_MAX_MS; ) {
          placed = await integrateBatches(this.#ctx, tree);
          report.placed += placed;
        }
        Object.assign(report, await this.#publish(tree));
      }
    } catch (error) {
      if (!(error instanceof LogRefused)) throw error;
      report.refused = error.message;
      this.#ctx.log.error({ reason: error.message }, "the log is refused: no new checkpoint is served");
    }
    return {
      ...report,
      anchors: this.#anchors,
      claims: this.#claims,
      durationMs: Math.round(performance.now() - startedAt),
    };
  }

  /**
   * Compares the tree with the anchors and, on a database that this process has not compared before, with the witnesses.
   * @returns null when there is no log.
   * @throws LogRefused
   */
  async #compare(): Promise<LogTree | null> {
    const { pool, logSettings } = this.#ctx;
    const { origin, keys, anchors } = logSettings;
    // Read the anchors before the tree. Another process may advance both meanwhile, so an anchor read later could be larger than the tree.
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
    const isNewServer = this.#comparedWith !== tree.server;
    if (isNewServer || known.length < anchors.length) {
      // After a change of the server, a newer anchor may be on another host. So the witnesses must also agree with the new server.
      const mustAnswer = known.length === 0 || (isNewServer && this.#comparedWith !== null);
      const agreed = await this.#compareWithWitnesses(tree, mustAnswer);
      if (remembered.length === 0 && agreed === 0 && anchors.length > 0) {
        throw new LogRefused("No anchor and no witness remembers the log. See: voucherctl log init --accept-anchor");
      }
      this.#comparedWith = tree.server;
    }
    return tree;
  }

  /**
   * Sends the served checkpoint to the witnesses again, so that nothing new is signed. Before the first one, sends that of the empty tree.
   * @param mustAnswer whether only the witnesses can detect a loss. The witnesses that do not respond must then be too few for a quorum. A
   * quorum of them could have cosigned a checkpoint that this database has lost.
   * @returns the number of witnesses that know the log and agree.
   * @throws LogRefused when a witness contradicts the tree or has cosigned a larger one, when the served checkpoint was forged, or when too
   * few witnesses respond.
   */
  async #compareWithWitnesses(tree: LogTree, mustAnswer: boolean): Promise<number> {
    const { pool, logSettings } = this.#ctx;
    const { policy, keys, witnesses } = logSettings;
    if (witnesses.length === 0) return 0;
    const published = await findPublished(pool);
    const empty = { origin: tree.origin, size: 0, root: await computeRoot(pool, 0) };
    const served = published === null ? null : parseCheckpoint(published.note);
    if (published !== null) {
      // Do not sign a checkpoint that was forged in the database.
      const isSigned = served !== null && isSignedBy(served.note, keys);
      // Another process may have published a larger tree since this one was read.
      const size = (await findLogTree(pool))?.size ?? 0;
      if (!isSigned || served.size > size || !served.root.equals(await computeRoot(pool, served.size))) {
        throw new LogRefused("The served checkpoint is not one that this log has signed for its tree.");
      }
    }
    const asked = await this.#ask(served?.note.text ?? formatCheckpoint(empty), tree);
    const silent = asked.filter(({ answer }) => answer.kind === "failed");
    const silentNames = namesIn(policy, silent);
    if (mustAnswer && silentNames.size > 0 && meetsQuorum(policy, silentNames)) {
      throw new LogRefused(
        `Too few witnesses answer to say what was signed. Without an answer: ${[...silentNames].join(", ")}.`,
      );
    }
    // Before the first checkpoint, a witness knows the log only if it has cosigned a tree that is larger than the empty one.
    return published !== null
      ? asked.length - silent.length
      : asked.filter(({ answer }) => answer.kind === "ahead").length;
  }

  /**
   * Asks all witnesses for their cosignatures of a checkpoint's text. A witness that contradicts the tree, or claims to have cosigned a larger
   * one, counts as failed while the others meet the quorum.
   * @throws LogRefused when they do not.
   */
  async #ask(text: string, tree: LogTree): Promise<{ witness: Witness; answer: WitnessAnswer }[]> {
    const { pool, logSettings, log } = this.#ctx;
    const { policy, witnesses, keys } = logSettings;
    const note = signNote(keys, text);
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
    // Read now: another process may have published since the pass began.
    const current = Math.max(tree.size, (await findLogTree(pool))?.size ?? 0);
    const agreeing = asked.filter(({ answer: { kind } }) => kind === "cosigned" || kind === "knowsNothing");
    const isQuorumMet = meetsQuorum(policy, namesIn(policy, agreeing));
    this.#claims = 0;
    for (const one of asked) {
      const { name } = one.witness.key;
      const claim = claimOf(name, one.answer, current);
      // Anyone can claim anything without a proof. So a claim stops the log only if the policy needs this witness.
      if (claim !== null && !isQuorumMet) throw new LogRefused(claim);
      if (claim !== null) {
        this.#claims += 1;
        one.answer = { kind: "failed", reason: claim };
        log.error({ witness: name, reason: claim }, "a witness contradicts the log without a proof");
      } else if (one.answer.kind === "failed") {
        log.warn({ witness: name, reason: one.answer.reason }, "a witness did not cosign");
      }
    }
    const cosigned = asked.filter(({ answer }) => answer.kind === "cosigned");
    await recordWitnessSizes(pool, new Map(cosigned.map(({ witness }) => [witness.key.name, size])));
    return asked;
  }

  /**
   * Signs the tree, writes the anchors, collects cosignatures and, if they meet the policy, serves the checkpoint. Does nothing if the served
   * checkpoint is recent and has the same size and policy.
   */
  async #publish(compared: LogTree): Promise<Pick<LogReport, "size" | "published" | "cosigned">> {
    const { pool, logSettings, log } = this.#ctx;
    const { keys, anchors, policy, policyText } = logSettings;
    const [tree, published] = [await findLogTree(pool), await findPublished(pool)];
    if (tree === null) throw new Error("the log has disappeared");
    assertCompared(tree, compared);
    const hasChanged = published === null || tree.size > published.size || published.policy !== policyText;
    if (!hasChanged && published.ageMs < PUBLISH_AGAIN_MS) {
      return { size: tree.size, published: published.size, cosigned: 0 };
    }
    const text = formatCheckpoint(tree);
    const signed = signNote(keys, text);
    this.#signed = tree;
    for (const file of anchors) await writeAnchor(file, signed, keys);
    this.#anchors = anchors.map((file) => ({ file, size: tree.size }));
    const asked = await this.#ask(text, tree);
    const cosigned = asked.flatMap(({ witness, answer }) => (answer.kind === "cosigned" ? [{ witness, answer }] : []));
    const counts = { size: tree.size, cosigned: cosigned.length };
    if (!meetsQuorum(policy, namesIn(policy, cosigned))) {
      log.warn(counts, "too few witnesses cosigned: the last checkpoint stays");
      return { ...counts, published: published?.size ?? 0 };
    }
    const note = `${signed}${cosigned.map(({ answer }) => `${answer.line}\n`).join("")}`;
    const isServed = await publishCheckpoint(pool, { ...tree, note, policy: policyText });
    return { ...counts, published: isServed ? tree.size : (published?.size ?? 0) };
  }
}
