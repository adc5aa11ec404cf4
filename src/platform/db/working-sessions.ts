import { boolean, integer, orNull, text } from "./columns.ts";
import type { Queryable } from "./queryable.ts";
import { SCHEMA } from "./schema.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./working-sessions.sql", import.meta.url));

export const readWorkingSessions = sql.requiredRow("read_working_sessions", {
  working: integer,
  isVisible: boolean,
});
const findSessionsBefore = sql.requiredValue("find_older_sessions", { sessions: orNull(text) }, { schema: integer });

/** The name of a process in its sessions. It contains the number of the schema that the process knows. */
export const nameOfProcess = (role: string) => `${role} (schema ${SCHEMA})`;

/**
 * Lists the sessions of API and worker processes with an older schema than `schema`, as text for operators, or null.
 */
export const findOlderSessions = (db: Queryable, schema: number = SCHEMA) => findSessionsBefore(db, schema);
