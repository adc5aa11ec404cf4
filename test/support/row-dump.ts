import type pg from "pg";

const TABLES = [
  "deployment",
  "organizations",
  "brands",
  "products",
  "api_keys",
  "api_key_secrets",
  "batches",
  "vouchers",
  "reservations",
  "redemptions",
  "voucher_events",
  "sweep_positions",
  "members",
  "referrer_contracts",
  "referral_links",
  "batch_windows",
  "listings",
  "claims",
  "purchases",
  "admin_acts",
] as const;
type Table = (typeof TABLES)[number];

/**
 * Every row of the tables, with its place and the transaction that wrote it: two equal dumps mean that nothing was written
 * between them, not even the same values again.
 */
export async function dumpRows(
  db: pg.Pool,
  tables: readonly Table[] = TABLES,
): Promise<Record<string, string[] | undefined>> {
  const dump: Record<string, string[]> = {};
  for (const table of tables) {
    const { rows } = await db.query<{ row: string }>(
      `SELECT format('%s %s %s', t.ctid, t.xmin, t::text) AS row FROM ${table} AS t ORDER BY t.ctid`,
    );
    dump[table] = rows.map(({ row }) => row);
  }
  return dump;
}
