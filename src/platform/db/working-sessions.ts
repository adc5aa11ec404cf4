import { boolean, integer } from "./columns.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./working-sessions.sql", import.meta.url));

export const readWorkingSessions = sql.requiredRow("read_working_sessions", {
  working: integer,
  isVisible: boolean,
});
