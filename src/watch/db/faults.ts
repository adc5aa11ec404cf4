import { arrayOf, boolean, integer, orNull, type Row, text, textOf, timestamptz } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { columnsOf, Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./faults.sql", import.meta.url));

/** A fault that has not ended. */
const OPEN = {
  beganAt: timestamptz,
  name: text,
  subject: text,
  page: text,
  severity: textOf<"red" | "amber" | "grey">(),
  what: text,
};

const selectOpen = sql.rows(
  "select_open_faults",
  {
    deployedAt: timestamptz,
    isLookedFor: boolean,
    beganAt: orNull(OPEN.beganAt),
    name: orNull(OPEN.name),
    subject: orNull(OPEN.subject),
    page: orNull(OPEN.page),
    severity: orNull(OPEN.severity),
    what: orNull(OPEN.what),
  },
  { seconds: integer },
);
const insertFaults = sql.execute("begin_faults", {
  beganAt: arrayOf(timestamptz),
  name: arrayOf(text),
  subject: arrayOf(text),
  page: arrayOf(text),
  severity: arrayOf(text),
  what: arrayOf(text),
});
const endRows = sql.execute("end_faults", { name: arrayOf(text), subject: arrayOf(text), page: arrayOf(text) });
const deleteOld = sql.execute("delete_old_faults", { days: integer });

/** Records that this process can serve requests and looks for faults, for processes that cannot see it in Redis. */
export const noteLook = sql.executeOne("note_look");

/** For how long a fault that ended is kept. Days. */
const KEPT_DAYS = 90;
/** Each other process looks every four seconds. Two of its looks may be missing. Seconds. */
const LOOKED_WITHIN_S = 10;

/** Identifies a fault: equal keys mean the same fault. */
export interface FaultKey {
  /** The name of its entry in the runbook. */
  name: string;
  subject: string;
  /** The operator page of the subject, as a path after `/ops`. Empty without one. */
  page: string;
}

/** A fault that has not ended. */
export type OpenFault = Row<typeof OPEN>;

/** What Postgres has recorded about faults. */
export interface KeptFaults {
  deployedAt: Date;
  /** Whether a process that can serve requests has looked for faults in the last seconds. */
  isLookedFor: boolean;
  open: OpenFault[];
}

export async function readKeptFaults(db: Queryable): Promise<KeptFaults> {
  const rows = await selectOpen(db, LOOKED_WITHIN_S);
  const [{ deployedAt, isLookedFor }] = rows as [(typeof rows)[number]];
  return { deployedAt, isLookedFor, open: rows.filter((row): row is typeof row & OpenFault => row.name !== null) };
}

/** Records faults that begin, and updates the descriptions of open ones. */
export async function beginFaults(db: Queryable, faults: readonly OpenFault[]): Promise<void> {
  await insertFaults(db, columnsOf(faults, "beganAt", "name", "subject", "page", "severity", "what"));
}

/** Ends faults, and deletes some that ended long ago. */
export async function endFaults(db: Queryable, faults: readonly FaultKey[]): Promise<void> {
  await endRows(db, columnsOf(faults, "name", "subject", "page"));
  await deleteOld(db, KEPT_DAYS);
}
