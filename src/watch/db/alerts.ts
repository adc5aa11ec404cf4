import { integer, jsonb } from "../../platform/db/columns.ts";
import type { Queryable } from "../../platform/db/queryable.ts";
import { Statements } from "../../platform/db/statements.ts";
import { type AlertState, alertState } from "../alerts.ts";

export const sql = new Statements(new URL("./alerts.sql", import.meta.url));

const select = sql.requiredRow("select_alerts", { version: integer, state: jsonb<object>() });
/** Whether it was replaced, because its version was `before`. */
export const replaceAlerts = sql.executeOne("replace_alerts", {
  before: integer,
  version: integer,
  state: jsonb<string>(),
});

/**
 * The messages that were sent about red faults, or null if another release wrote them in another form; and the version
 * of this state.
 */
export async function readAlerts(db: Queryable): Promise<{ version: number; state: AlertState | null }> {
  const { version, state } = await select(db);
  return { version, state: alertState.safeParse({ ...state, version }).data ?? null };
}
