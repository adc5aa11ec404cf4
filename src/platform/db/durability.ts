import { boolean, text } from "./columns.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./durability.sql", import.meta.url));

/** Reads the settings of one connection of the pool. */
export const readDurabilitySettings = sql.requiredRow("select_durability_settings", {
  fsync: text,
  fullPageWrites: text,
  synchronousStandbyNames: text,
  restartAfterCrash: text,
  isStandby: boolean,
});
export const awaitStandbys = sql.prepare("await_standbys");
