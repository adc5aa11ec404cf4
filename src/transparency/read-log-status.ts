import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { verifySignatures } from "#tlog/note.ts";
import { type Policy, parsePolicy } from "#tlog/policy.ts";
import type { QueueViews } from "../platform/queues/queue-views.ts";
import { findPublished, findTlogProgress, selectWitnessSizes } from "./db/log-checkpoints.ts";
import { selectTlogRetirements, type TlogRetirement } from "./db/log-retirements.ts";
import { findTlogTree } from "./db/log-tree.ts";
import type { TlogReport } from "./job.ts";
import { tlogQueue } from "./job.ts";

/** Maximum wait for Redis. Milliseconds. */
const WAIT_MAX_MS = 2_000;

/** A witness that the policy names. */
export interface WitnessStatus {
  name: string;
  url: string | null;
  /** The size of the last tree that the witness is known to have cosigned. Null if none is known. */
  size: number | null;
  /** When the witness cosigned the served checkpoint. Null if it has not. */
  cosignedAt: Date | null;
}

/** The log, as operators see it. */
export interface TlogStatus {
  origin: string;
  /** The number of leaves in the tree. */
  size: number;
  /** The served checkpoint. `lagMs` is its age while leaves wait for a larger checkpoint, and otherwise 0. */
  published: { size: number; ageMs: number; lagMs: number; note: string } | null;
  quorum: string | null;
  witnesses: WitnessStatus[];
  /** The sequencer's last pass. Null if none is known, or if Redis does not respond. */
  pass: { report: TlogReport; at: Date } | null;
  /** The retired logs that this log continues, oldest first. */
  retirements: TlogRetirement[];
}

/** Reads the state of the log from Postgres, and the last pass from Redis. Null when there is no log. */
export async function readTlogStatus(ctx: {
  pool: pg.Pool;
  queueViews: Pick<QueueViews, "findLastReply">;
  log: Logger;
}): Promise<TlogStatus | null> {
  const { pool, queueViews, log } = ctx;
  const tree = await findTlogTree(pool);
  if (tree === null) return null;
  const published = await findPublished(pool);
  const policy = published === null ? null : await parsePolicy(published.policy);
  const last = await pTimeout(queueViews.findLastReply(tlogQueue), { milliseconds: WAIT_MAX_MS }).catch((error) => {
    log.debug({ err: error }, "cannot read the last pass of the log");
    return null;
  });
  const progress = await findTlogProgress(pool);
  return {
    origin: tree.origin,
    size: tree.size,
    published: published && {
      size: published.size,
      ageMs: published.ageMs,
      lagMs: progress?.lagMs ?? 0,
      note: published.note,
    },
    quorum: policy?.quorum ?? null,
    witnesses: policy === null ? [] : await readWitnesses(pool, policy, published?.note ?? ""),
    pass: last && { report: last.reply, at: last.at },
    retirements: await selectTlogRetirements(pool),
  };
}

async function readWitnesses(pool: pg.Pool, policy: Policy, note: string): Promise<WitnessStatus[]> {
  const keys = policy.witnesses.map(({ key }) => key);
  const parsed = parseCheckpoint(note);
  const cosignatures = parsed === null ? [] : await verifySignatures(parsed.note, keys);
  const sizes = await selectWitnessSizes(
    pool,
    keys.map(({ name }) => name),
  );
  return policy.witnesses.map(({ key, url }) => {
    const { name } = key;
    const time = cosignatures.find((cosignature) => cosignature.key === key)?.time ?? null;
    return { name, url, size: sizes.get(name) ?? null, cosignedAt: time === null ? null : new Date(time * 1_000) };
  });
}
