import {
  arrayOf,
  bigint,
  boolean,
  integer,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/pool.ts";
import { columnsOf, Statements } from "../../platform/db/statements.ts";

/** The fields of a fault that a message contains. */
const TOLD = {
  severity: textOf<"red" | "amber" | "grey">(),
  what: text,
  subject: text,
  since: timestamptz,
  endedAt: orNull(timestamptz),
};
const FAULT = {
  ...TOLD,
  kind: text,
  page: text,
  told: orNull(textOf<"begin" | "end">()),
  failingSince: orNull(timestamptz),
};
/** The content of a message. */
export type Told = Row<typeof TOLD>;
/** A fault as stored. */
export type RecordedFault = Row<typeof FAULT>;

/** Identifies a fault. */
export type FaultKey = Pick<RecordedFault, "kind" | "subject" | "page">;

export const sql = new Statements(new URL("./faults.sql", import.meta.url));

export const selectFaults = sql.rows("select_faults", FAULT);
export const takeUntold = sql.rows("take_untold", { id: bigint, ...TOLD }, { seconds: integer });
export const recordTold = sql.execute("record_told", { id: bigint, told: textOf<"begin" | "end">() });
export const recordRefused = sql.execute("record_refused", { id: bigint });
export const forgetFaults = sql.execute("forget_faults", { seconds: integer, isTelling: boolean });
const insert = sql.execute("begin_faults", {
  kind: arrayOf(text),
  subject: arrayOf(text),
  page: arrayOf(text),
  severity: arrayOf(text),
  what: arrayOf(text),
  since: arrayOf(timestamptz),
  told: arrayOf(orNull(text)),
});
const update = sql.execute("end_faults", { kind: arrayOf(text), subject: arrayOf(text), page: arrayOf(text) });

type NewFault = Omit<RecordedFault, "endedAt" | "failingSince">;

export async function beginFaults(db: Queryable, faults: readonly NewFault[]): Promise<void> {
  if (faults.length === 0) return;
  await insert(db, columnsOf(faults, "kind", "subject", "page", "severity", "what", "since", "told"));
}

export async function endFaults(db: Queryable, faults: readonly FaultKey[]): Promise<void> {
  if (faults.length > 0) await update(db, columnsOf(faults, "kind", "subject", "page"));
}
