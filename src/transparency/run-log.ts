import type pg from "pg";
import type { Logger } from "pino";
import { formatCheckpoint, parseCheckpoint, type TreeHead } from "#tlog/checkpoint.ts";
import { signNote } from "#tlog/note.ts";
import { meetsQuorum } from "#tlog/policy.ts";
import { askWitness, claimOf, namesIn, type Witness, type WitnessAnswer } from "#tlog/witness-client.ts";
import { readAnchor, writeAnchor } from "./anchors.ts";
import { publishCheckpoint, recordWitnessSizes, selectWitnessSizes } from "./db/log-checkpoints.ts";
import { findTlogTree, selectBatchesSetAside } from "./db/log-tree.ts";
import { integrateBatches } from "./integrate-batches.ts";
import type { TlogReport } from "./job.ts";
import type { TlogSettings } from "./log-settings.ts";
import { signStatements } from "./sign-statements.ts";
import { EMPTY_TREE, proveConsistency, TlogRefused } from "./tree-proofs.ts";

/** Maximum time in which a pass gives batches their positions before it publishes. Milliseconds. */
const INTEGRATE_MAX_MS = 2_000;
/** An unchanged tree is published again after this time, so that its cosignatures stay recent. Milliseconds. */
const PUBLISH_AGAIN_MS = 600_000;
/** Maximum number of ids that one pass reports of batches that never get a position. */
const SET_ASIDE_MAX = 10;

/** The dependencies of the sequencer. */
interface SequencerContext {
  pool: pg.Pool;
  tlogSettings: TlogSettings;
  log: Logger;
}

type Integrated = NonNullable<Awaited<ReturnType<typeof integrateBatches>>>;

/** Appends batches of leaves to the log's tree and publishes checkpoints. Each process of the queue `log` has one. */
export class Sequencer {
  readonly #ctx: SequencerContext;
  /** The start time of the database server that was last compared with the witnesses. */
  #comparedWith: string | null = null;
  /** The last tree that this process has signed. It is in memory, so a change in Postgres cannot change it. */
  #signed: TreeHead | null = null;
  /** The anchors, as this process last read or wrote them. */
  #anchors: TlogReport["anchors"] = [];
  /** Number of witnesses that contradicted the log in the last request without a proof. */
  #claims = 0;

  constructor(ctx: SequencerContext) {
    this.#ctx = ctx;
  }

  /**
   * Runs one pass. Verifies the tree, starting from what the log has signed. Gives waiting batches their positions, and
   * publishes a checkpoint. Any number of processes may run passes, and each may stop at any point.
   */
  async run(): Promise<TlogReport> {
    const { pool, tlogSettings, log } = this.#ctx;
    const startedAt = performance.now();
    const report = { placed: 0, size: 0, published: 0, cosigned: 0 };
    let refused: TlogRefused | null = null;
    try {
      const heads = await this.#readSigned();
      const isRemembered = heads.length > 0;
      if (!isRemembered) this.#comparedWith = null;
      let last: Integrated | null = null;
      for (let placed = -1; placed !== 0 && (last === null || performance.now() - startedAt < INTEGRATE_MAX_MS); ) {
        const integrated = await integrateBatches(pool, tlogSettings, heads, this.#comparedWith);
        if (integrated === null) break;
        if (integrated.server !== this.#comparedWith) {
          await this.#compareWithWitnesses(integrated, isRemembered);
          continue;
        }
        last = integrated;
        placed = last.placed;
        heads.push(last.head);
        report.placed += placed;
      }
      if (last !== null) {
        await this.#publish(last, report);
        // Signs statements only after the checks above, which refuse a database that contradicts the log.
        await signStatements(pool, tlogSettings.keys);
      } else if (isRemembered && (await findTlogTree(pool)) === null) {
        throw new TlogRefused("The database has no log, but an anchor has one.");
      }
    } catch (error) {
      if (!(error instanceof TlogRefused)) throw error;
      refused = error;
      log.error({ reason: error.message }, "the log is refused: no new checkpoint is served");
    }
    const setAside = await selectBatchesSetAside(pool, SET_ASIDE_MAX);
    if (setAside.length > 0)
      log.error({ ids: setAside }, "leaf batches are set aside: the sequence has not drawn their ids");
    return {
      ...report,
      anchors: this.#anchors,
      claims: this.#claims,
      setAside: setAside.length,
      refused: refused?.message ?? null,
      obstacle: refused?.obstacle ?? null,
      durationMs: Math.round(performance.now() - startedAt),
    };
  }

  /** Reads what the log has signed, from the anchors and this process's memory. @throws TlogRefused */
  async #readSigned(): Promise<TreeHead[]> {
    const { anchors, keys } = this.#ctx.tlogSettings;
    // Reads the anchors first, because another process may advance the tree and then the anchors meanwhile.
    const found = await Promise.all(anchors.map((file) => readAnchor(file, keys))).catch((error: Error) => {
      throw new TlogRefused(error.message, "anchor");
    });
    this.#anchors = anchors.map((file, at) => ({ file, size: found[at]?.size ?? null }));
    return [...found, this.#signed].filter((head) => head !== null);
  }

  /**
   * Compares the tree with what the witnesses have cosigned. Sends them the served checkpoint again, or that of the
   * empty tree if none is served yet, so the log signs nothing new. Fails if the witnesses that do not answer are
   * enough for a quorum: they may have cosigned a tree that this database has lost.
   * @param isRemembered whether an anchor or this process knows what the log has signed. If not, a witness must know
   * it.
   * @throws TlogRefused when a witness contradicts the tree or has cosigned a larger tree, or when too few witnesses
   * respond.
   */
  async #compareWithWitnesses({ published, server }: Integrated, isRemembered: boolean): Promise<void> {
    const { policy, origin } = this.#ctx.tlogSettings;
    const served = published === null ? null : parseCheckpoint(published.note);
    const asked = await this.#ask(served?.note.text ?? formatCheckpoint({ origin, ...EMPTY_TREE }));
    const silent = asked.filter(({ answer }) => answer.kind === "failed");
    const isQuorumNeeded = !isRemembered || policy.quorum !== null;
    if (isQuorumNeeded && silent.length > 0 && this.#meetsQuorum(silent)) {
      const names = silent.map(({ witness }) => witness.key.name).join(", ");
      throw new TlogRefused(
        `Too few witnesses answer to say what was signed. Without an answer: ${names}.`,
        "witnesses",
      );
    }
    // Before the first checkpoint, a witness knows the log only if it has cosigned a tree that is not empty.
    const knowing = asked.filter(
      ({ answer: { kind } }) => kind === "ahead" || (served !== null && kind === "cosigned"),
    );
    if (!isRemembered && knowing.length === 0) {
      throw new TlogRefused(
        "No anchor and no witness remembers the log. See: voucherctl log init --accept-anchor",
        "anchor",
      );
    }
    this.#comparedWith = server;
  }

  /**
   * Asks all witnesses for their cosignatures of a checkpoint's text. If a witness contradicts the tree or claims to
   * have cosigned a larger one, it counts as failed while other witnesses meet the quorum.
   * @throws TlogRefused when the other witnesses do not meet the quorum.
   */
  async #ask(text: string): Promise<{ witness: Witness; answer: WitnessAnswer }[]> {
    const { pool, tlogSettings, log } = this.#ctx;
    const { witnesses, keys } = tlogSettings;
    const note = await signNote(keys, text);
    const sizes = await selectWitnessSizes(
      pool,
      witnesses.map(({ key }) => key.name),
    );
    const prove = (oldSize: number, size: number) => proveConsistency(pool, oldSize, size);
    const asked = await Promise.all(
      witnesses.map(async (witness) => ({
        witness,
        answer: await askWitness(witness, note, sizes.get(witness.key.name) ?? 0, prove),
      })),
    );
    const size = parseCheckpoint(note)?.size ?? 0;
    // Reads the size again, because another process may have published since the pass began.
    const current = (await findTlogTree(pool))?.size ?? 0;
    const agreeing = asked.filter(({ answer: { kind } }) => kind === "cosigned" || kind === "knowsNothing");
    this.#claims = 0;
    for (const one of asked) {
      const { name } = one.witness.key;
      const claim = claimOf(name, one.answer, current);
      // A claim without a proof may be false, so it stops the log only if the policy needs this witness.
      if (claim !== null && !this.#meetsQuorum(agreeing)) throw new TlogRefused(claim);
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
   * Signs the verified tree, collects cosignatures, writes the anchors and serves the checkpoint. Writes anchors only
   * for trees that the witnesses accept, and serves a checkpoint only when it is in an anchor. If the served checkpoint
   * is recent and has the same size and policy, only writes missing anchors.
   */
  async #publish({ head, published }: Integrated, report: Pick<TlogReport, "size" | "published" | "cosigned">) {
    const { pool, tlogSettings } = this.#ctx;
    const { origin, keys, policyText } = tlogSettings;
    Object.assign(report, { size: head.size, published: published?.size ?? 0 });
    const isServed = published?.size === head.size && published.policy === policyText;
    const text = formatCheckpoint({ origin, ...head });
    if (isServed && published.ageMs < PUBLISH_AGAIN_MS) return this.#writeAnchors(text, head);
    // If publishing fails, the next pass first compares the tree with the witnesses, like a new process.
    const server = this.#comparedWith;
    this.#comparedWith = null;
    const asked = await this.#ask(text);
    this.#comparedWith = server;
    this.#signed = head;
    const cosigned = asked.flatMap(({ witness, answer }) => (answer.kind === "cosigned" ? [{ witness, answer }] : []));
    report.cosigned = cosigned.length;
    if (!this.#meetsQuorum(cosigned)) {
      // A witness that is ahead has cosigned a larger tree. Another process publishes that tree.
      if (this.#meetsQuorum(asked.filter(({ answer: { kind } }) => kind === "cosigned" || kind === "ahead"))) return;
      throw new TlogRefused(`Too few witnesses cosigned: ${cosigned.length}. The last checkpoint stays.`, "witnesses");
    }
    await this.#writeAnchors(text, head);
    const note = `${await signNote(keys, text)}${cosigned.map(({ answer }) => `${answer.line}\n`).join("")}`;
    if (await publishCheckpoint(pool, { origin, ...head, note, policy: policyText })) report.published = head.size;
  }

  #meetsQuorum(asked: readonly { witness: Witness }[]): boolean {
    const { policy } = this.#ctx.tlogSettings;
    return meetsQuorum(policy, namesIn(policy, asked));
  }

  /** Writes the anchors that do not contain this tree yet. @throws TlogRefused */
  async #writeAnchors(text: string, { size }: TreeHead): Promise<void> {
    const { keys } = this.#ctx.tlogSettings;
    for (const anchor of this.#anchors) {
      if (anchor.size === size) continue;
      await writeAnchor(anchor.file, await signNote(keys, text), keys).catch((error: Error) => {
        throw new TlogRefused(`The anchor ${anchor.file} cannot be written: ${error.message}`, "anchor");
      });
      anchor.size = size;
    }
  }
}
