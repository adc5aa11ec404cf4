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

/** The settings that decide whether a committed transaction survives, as one of the pool's connections has them. */
export async function readDurabilitySettings(db: Queryable): Promise<Row<typeof SETTINGS>> {
  const [settings] = await readRows(db, sql.select_durability_settings, []);
  return settings as Row<typeof SETTINGS>;
}

/** Roles and databases whose own settings make COMMIT return too early. */
export function findWeakenedRoles(db: Queryable): Promise<{ subject: string; setting: string }[]> {
  return readRows(db, sql.select_weakened_roles, []);
}
