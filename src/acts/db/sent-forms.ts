import { boolean, jsonb, text, uuid } from "../../platform/db/columns.ts";
import { Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./sent-forms.sql", import.meta.url));

export const insertSentForm = sql.executeOne("insert_sent_form", {
  token: uuid,
  command: text,
  arguments: jsonb<string>(),
  entityId: text,
});
export const findSentForm = sql.row(
  "find_sent_form",
  { entityId: text, isSame: boolean },
  { token: uuid, command: text, arguments: jsonb<string>() },
);
