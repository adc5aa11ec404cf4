import { integer, jsonb } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/queryable.ts";
import { Statements } from "../../platform/db/statements.ts";
import { type AlertState, alertState } from "../alerts.ts";

export const sql = new Statements(new URL("./alerts.sql", import.meta.url));

const select = sql.requiredRow("select_alerts", { version: integer, state: jsonb<object>() });
/** Returns whether the state was replaced. It was not if its version was other than `before`. */
export const replaceAlerts = sql.executeOne("replace_alerts", {
  before: integer,
  version: integer,
  state: jsonb<string>(),
});

/** The state of the messages about red faults, or null if another release wrote it in another form; and its version. */
export async function readAlerts(db: Queryable): Promise<{ version: number; state: AlertState | null }> {
  const { version, state } = await select(db);
  return { version, state: alertState.safeParse({ ...state, version }).data ?? null };
}
