import { boolean, type Row, text } from "./columns.ts";
import type { Queryable } from "./pool.ts";
import { loadStatements, readRows } from "./statements.ts";

const SETTINGS = {
  fsync: text,
  fullPageWrites: text,
  synchronousCommit: text,
  synchronousStandbyNames: text,
  isStandby: boolean,
};

export const sql = loadStatements(new URL("./durability.sql", import.meta.url), {
  select_durability_settings: SETTINGS,
  select_weakened_roles: { subject: text, setting: text },
});

/** Reads the settings that decide whether a committed transaction survives a crash. The values are those of one connection of `db`. */
export async function readDurabilitySettings(db: Queryable): Promise<Row<typeof SETTINGS>> {
  const [settings] = await readRows(db, sql.select_durability_settings, []);
  return settings as Row<typeof SETTINGS>;
}

/** Finds roles and databases whose own settings make COMMIT return before the transaction is durable. */
export function findWeakenedRoles(db: Queryable): Promise<{ subject: string; setting: string }[]> {
  return readRows(db, sql.select_weakened_roles, []);
}
