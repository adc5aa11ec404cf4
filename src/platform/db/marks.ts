import type pg from "pg";
import {
  judgeServer,
  type Memory,
  type Recollection,
  type ServerReading,
  type SharedText,
  startsToHave,
  type Verdict,
} from "../marks.ts";
import { arrayOf, bigint, boolean, orNull, outerJoined, text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { UnusableDatabase } from "./schema.ts";
import { Statements } from "./statements.ts";
import { inTransaction } from "./transaction.ts";

export const sql = new Statements(new URL("./marks.sql", import.meta.url));

/** The result columns of a statement that compares a server with a memory. */
export const recollection = {
  timeline: text,
  started: text,
  newestId: orNull(text),
  lastingId: orNull(text),
  oldestPosition: orNull(bigint),
  acceptedLosses: arrayOf(text),
};

const addMark = sql.execute("add_mark");
const selectNewestMark = sql.requiredRow("select_newest_mark", {
  position: bigint,
  id: text,
  older: outerJoined({ position: bigint, id: text }),
  started: text,
  isReplicated: boolean,
});
const recallMarks = sql.requiredRow(
  "recall_marks",
  { ...recollection, isReplicated: boolean },
  { newestPosition: orNull(bigint), lastingPosition: orNull(bigint) },
);

/**
 * Records that an operator accepts what this database has lost. After the commit, processes that refused the server
 * admit it.
 */
export const acceptLoss = sql.execute("insert_accepted_loss");

/** The parameters of a statement that compares a server with a memory. */
export function positionsOf(memory: Memory | null) {
  return { newestPosition: memory?.newest.position ?? null, lastingPosition: memory?.lasting?.position ?? null };
}

/** Reads which marks of a memory the server has. */
function recall(db: Queryable, memory: Memory): Promise<Recollection> {
  return recallMarks(db, positionsOf(memory));
}

/** How a server compares with everything that processes have shared. */
interface Judgement {
  readonly verdict: Verdict;
  /** The memory of a mark that it lacks. */
  readonly lacked: Memory | null;
  /** The newest memory whose mark it must have. */
  readonly newest: Memory | null;
}

export async function judgeShared({ starts, lacked }: SharedText, db: Queryable): Promise<Judgement> {
  let verdict: Verdict = "known";
  let newest: Memory | null = null;
  for (const { memory } of starts) {
    const found = await recall(db, memory);
    if (!startsToHave(starts, found).some((each) => each.memory === memory)) continue;
    const judged = judgeServer(memory, found);
    if (judged === "setBack") return { verdict: judged, lacked: memory, newest: memory };
    if (judged !== "known") verdict = judged;
    newest = memory;
  }
  const isLacking = lacked !== null && judgeServer(lacked, await recall(db, lacked)) === "setBack";
  return { verdict, lacked: isLacking ? lacked : null, newest };
}

/** The refusal of a server that lacks a mark. */
export const lacksMarks = () =>
  new UnusableDatabase(
    "copied",
    "The files of this database server were set back: it lacks what was seen committed. " +
      "To accept the loss, run: voucherctl log recover, or if no leaf of a log is lost: voucherctl db adopt",
  );

/**
 * Adds a mark, or uses one of the last second, and reads the server's state after the commit.
 * @throws UnusableDatabase when no standby has confirmed the commit.
 */
export async function confirmMark(pool: pg.Pool): Promise<Omit<ServerReading, "deploymentId">> {
  const { position, id, older, started, isReplicated } = await inTransaction(pool, async (tx) => {
    await addMark(tx);
    return selectNewestMark(tx);
  });
  // After the COMMIT: if synchronous replication was turned off meanwhile, the COMMIT did not wait.
  const after = await recallMarks(pool, { newestPosition: null, lastingPosition: null });
  const { timeline, acceptedLosses } = after;
  return {
    timeline,
    started,
    newest: { position, id },
    older,
    isReplicated: isReplicated && after.isReplicated,
    acceptedLosses,
  };
}
