import { orNull, text, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { columnsOf, Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./faults.sql", import.meta.url));

const selectOpen = sql.rows("select_open_faults", {
  deployedAt: timestamptz,
  beganAt: orNull(timestamptz),
  name: orNull(text),
  subject: orNull(text),
  page: orNull(text),
});
const insertFaults = sql.execute("begin_faults");
const endRows = sql.execute("end_faults");
const deleteOld = sql.execute("delete_old_faults");

/** For how long a fault that ended is kept. Days. */
const KEPT_DAYS = 90;

/** What tells a fault from others. */
export interface FaultKey {
  /** As in the runbook. */
  name: string;
  subject: string;
  /** The operator page of the subject, after `/ops`. Empty without one. */
  page: string;
}

/** A fault that begins. */
export interface NewFault extends FaultKey {
  beganAt: Date;
  severity: string;
  what: string;
}

/** The faults that have not ended, each with its begin, and when the deployment began. */
export async function readOpenFaults(
  db: Queryable,
): Promise<{ deployedAt: Date; open: (FaultKey & { beganAt: Date })[] }> {
  const rows = await selectOpen(db);
  const [{ deployedAt }] = rows as [(typeof rows)[number]];
  const open = rows.flatMap(({ beganAt, name, subject, page }) =>
    beganAt === null || name === null || subject === null || page === null ? [] : [{ beganAt, name, subject, page }],
  );
  return { deployedAt, open };
}

/** Records faults that begin. Does nothing for one that is open. */
export async function beginFaults(db: Queryable, faults: readonly NewFault[]): Promise<void> {
  await insertFaults(db, ...columnsOf(faults, "beganAt", "name", "subject", "page", "severity", "what"));
}

/** Ends faults, and forgets some that ended long ago. */
export async function endFaults(db: Queryable, faults: readonly FaultKey[]): Promise<void> {
  await endRows(db, ...columnsOf(faults, "name", "subject", "page"));
  await deleteOld(db, KEPT_DAYS);
}
