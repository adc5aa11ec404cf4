import { boolean, integer, orNull, type Row, text, timestamptz } from "../../../platform/db/columns.ts";
import { Statements } from "../../../platform/db/statements.ts";

export const sql = new Statements(new URL("./suspensions.sql", import.meta.url));

/** A batch whose histories do not all say yet that it was suspended or resumed. */
const DUE = { batchId: text, dueAt: timestamptz };
export type DueSuspension = Row<typeof DUE>;

/** Returns false if the batch is suspended already. */
export const suspendBatchRow = sql.executeOne("suspend_batch", { id: text, reason: text, followMs: integer });
/** Returns false if the batch is not suspended. */
export const resumeBatchRow = sql.executeOne("resume_batch", {
  id: text,
  reason: orNull(text),
  followMs: integer,
});
export const isBatchSuspended = sql.value("is_batch_suspended", { suspended: boolean }, { batchId: text });
export const selectDueSuspensions = sql.rows("select_due_suspensions", DUE, { limit: integer });
export const lockSuspension = sql.row("lock_suspension", { suspendedAt: orNull(timestamptz) }, { batchId: text });
export const endSuspensionWalk = sql.execute("end_suspension_walk", DUE);
export const readSuspensionReason = sql.requiredValue(
  "read_suspension_reason",
  { reason: orNull(text) },
  { voucherId: text },
);
