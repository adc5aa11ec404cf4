import { text } from "../../platform/db/columns.ts";
import { Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./statement-notes.sql", import.meta.url));

export const selectStatementsToSign = sql.rows("select_statements_to_sign", {
  organizationId: text,
  month: text,
  content: text,
});
export const keepNote = sql.execute("keep_note", { organizationId: text, month: text, note: text });
