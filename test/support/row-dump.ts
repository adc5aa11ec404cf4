import type pg from "pg";

const TABLES =
  `deployment organizations brands products api_keys api_key_secrets batches vouchers reservations redemptions
  voucher_events sweep_positions broken_chains members referrer_contracts referral_links batch_windows listings
  claims purchases webhook_endpoints webhook_outbox webhook_deliveries audit_entries`.split(/\s+/);

/** Dumps every row with its position and last transaction. Equal dumps prove that no row was written in between. */
export async function dumpRows(
  db: pg.Pool,
  tables: readonly string[] = TABLES,
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

/** Finds the tables that contain a text, plain or in a JSON string, by name. */
export async function tablesWith(db: pg.Pool, text: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables
      WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
      ORDER BY table_name COLLATE "C"`,
  );
  const found: string[] = [];
  for (const { name } of rows) {
    const quoted = JSON.stringify(text).slice(1, -1);
    const { rowCount } = await db.query(
      `SELECT FROM ${name} AS t
        WHERE strpos(t::text, $1) > 0 OR strpos(to_json(t)::text, $2) > 0 OR strpos(t::text, $2) > 0`,
      [text, quoted],
    );
    if (rowCount !== 0) found.push(name);
  }
  return found;
}
