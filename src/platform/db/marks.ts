import type pg from "pg";
import type { Memory, ServerReading, ServerVerdict } from "../marks.ts";
import { arrayOf, bigint, boolean, orNull, outerJoined, text } from "./columns.ts";
import { UnusableDatabase } from "./schema.ts";
import { Statements } from "./statements.ts";
import { inTransaction } from "./transaction.ts";

export const sql = new Statements(new URL("./marks.sql", import.meta.url));

/** The result columns of statements that compare a server with what a process remembers. */
export const recollection = {
  timeline: text,
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
/** Reads which of the remembered marks the server has. */
export const recallMarks = sql.requiredRow(
  "recall_marks",
  { ...recollection, isReplicated: boolean },
  { newestPosition: orNull(bigint), lastingPosition: orNull(bigint) },
);

/**
 * Records that an operator accepts this database's loss of data. After the commit, processes that refused the server
 * admit it.
 */
export const acceptLoss = sql.execute("insert_accepted_loss");

/** The parameters with which a statement looks for a process's remembered marks on a server. */
export function positionsOf(memory: Memory | null) {
  return { newestPosition: memory?.newest?.position ?? null, lastingPosition: memory?.lasting?.position ?? null };
}

/** Tells operators where to find a server that this process remembers. */
const placeOf = ({ host, timeline }: Memory) => `${host} on timeline ${Number.parseInt(timeline, 16)}`;

/** The refusal of a server while processes still make marks on another server. */
export function waitsFor(memory: Memory | null): UnusableDatabase {
  const who = memory === null ? "may make marks" : `makes marks: ${placeOf(memory)}`;
  const until = "Others are refused until it has made none for some seconds.";
  return new UnusableDatabase("unavailable", `Another server of this deployment ${who}. ${until}`);
}

/** The refusal of a former primary and of a server that was set back. Null for other servers. */
export function refusalFor(verdict: ServerVerdict, memory: Memory | null): UnusableDatabase | null {
  if (memory === null || !(verdict === "former" || verdict === "setBack")) return null;
  const seen = `The last mark was seen at ${placeOf(memory)}.`;
  // A former primary must not be adopted as a new deployment, because the deployment would then exist twice.
  return verdict === "former"
    ? new UnusableDatabase("unavailable", `This database server was the primary before a standby was promoted. ${seen}`)
    : new UnusableDatabase(
        "copied",
        `The files of this database server were set back: it lacks what was seen committed. ${seen} ` +
          "To accept the loss, run: voucherctl log recover, or if no leaf of a log is lost: voucherctl db adopt",
      );
}

/**
 * Adds a mark, or uses one from the last second, and reads the server's state after the commit.
 * @throws UnusableDatabase when no standby has confirmed the commit.
 */
export async function confirmMark(pool: pg.Pool): Promise<ServerReading> {
  const { position, id, older, started, isReplicated } = await inTransaction(pool, async (tx) => {
    await addMark(tx);
    return selectNewestMark(tx);
  });
  // Reads after the COMMIT. If synchronous replication was turned off meanwhile, the COMMIT did not wait for a standby.
  const after = await recallMarks(pool, positionsOf(null));
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
