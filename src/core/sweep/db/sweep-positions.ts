import { bigint, text, textOf } from "../../../platform/db/columns.ts";
import { Statements } from "../../../platform/db/statements.ts";

/** A sweeper task that goes through all rows of a table in several passes. Each continues where the last stopped. */
export type ResumableTask = "remove_reservations" | "check_chains";

export const sql = new Statements(new URL("./sweep-positions.sql", import.meta.url));

export const findSweepPosition = sql.row(
  "find_sweep_position",
  { position: text, ageMs: bigint },
  { task: textOf<ResumableTask>() },
);
export const moveSweepPosition = sql.execute("move_sweep_position", { task: textOf<ResumableTask>(), position: text });
