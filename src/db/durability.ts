import { boolean, type Row, text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { loadStatements, type PreparedStatements, prepare, readRequiredRow, readRows } from "./statements.ts";

const SETTINGS = {
  fsync: text,
  fullPageWrites: text,
  synchronousCommit: text,
  synchronousStandbyNames: text,
  restartAfterCrash: text,
  isStandby: boolean,
};

export const sql = loadStatements(new URL("./durability.sql", import.meta.url), {
  select_durability_settings: SETTINGS,
  select_weakened_roles: { subject: text, setting: text },
  await_standbys: {},
});

/** Reads the settings that decide whether a committed transaction survives a crash. The values are those of one connection of `db`. */
export function readDurabilitySettings(db: Queryable): Promise<Row<typeof SETTINGS>> {
  return readRequiredRow(db, sql.select_durability_settings, []);
}

/** Finds the roles whose own setting makes COMMIT return before the transaction is durable, and this database if it has such a setting. */
export function findWeakenedRoles(db: Queryable): Promise<{ subject: string; setting: string }[]> {
  return readRows(db, sql.select_weakened_roles, []);
}

/** The statement that makes a transaction wait at COMMIT until the synchronous standbys have what it has read and written. */
export function awaitStandbys(): PreparedStatements {
  return [prepare(sql.await_standbys, [])];
}
