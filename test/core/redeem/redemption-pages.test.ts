import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { readStatements } from "../../../src/platform/db/statements.ts";
import { openServicePool } from "../../support/servers.ts";
import { useDatabase } from "../../support/use-service.ts";

/** The number of redemptions of each of two organizations. */
const COUNT = 6_000;
const LIMIT = 20;
/** Maximum database pages per listed redemption: its row and index entry; by index its voucher, batch, product. */
const PAGES_PER_ROW = 14;
/** Pages that a search in the index reads from its root to a leaf. */
const PAGES_OF_DESCENT = 6;

const { select_redemptions: STATEMENT } = readStatements(
  new URL("../../../src/core/redeem/db/redemptions.sql", import.meta.url),
);

const { servers, partner, stranger } = useDatabase();
let pool: pg.Pool;
/** A connection that planned the statement while there was no redemption, as in a process that runs for long. */
let early: pg.PoolClient;

beforeAll(async () => {
  pool = openServicePool(servers.databaseUrl, 2);
  early = await prepared();
  for (const { organizationId, productId } of [partner, stranger]) {
    const batchId = newId("bat");
    await servers.db.query(
      `INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
       VALUES ($1, $2, $3, 'infinity', 1, 1, 0)`,
      [batchId, productId, COUNT],
    );
    await servers.db.query(
      `INSERT INTO vouchers
         (serial, last_sequence, sealed_sequence, id, organization_id, batch_id, code, code_key, sealed_hash, pickable)
       SELECT n, 1, 1, 'vch_' || $1 || lpad(n::text, 6, '0'), $2, $1, 'CODE' || n, 'CODE' || n,
              sha256(n::text::bytea), false
         FROM generate_series(1, $3::int) AS n`,
      [batchId, organizationId, COUNT],
    );
    // Redemptions one second apart, interleaved with those of the other organization.
    await servers.db.query(
      `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
       SELECT timestamptz '2026-01-01 00:00Z' + serial * interval '1 second', id, organization_id, 'key', id, id,
              'order-' || serial
         FROM vouchers WHERE batch_id = $1`,
      [batchId],
    );
  }
  await servers.db.query("ANALYZE redemptions");
}, 200_000);

afterAll(async () => {
  early.release(true);
  await pool.end();
});

it.each([
  ["planned before there was any redemption", () => early],
  ["planned on the full table", prepared],
])("a page of the list of redemptions reads only the database pages with its rows: %s", async (_, connect) => {
  const client = await connect();
  const { organizationId } = partner;
  const empty = await readPages(client, "org_unheard_of", "2026-01-01");
  expect(empty.pages).toBeLessThanOrEqual(PAGES_OF_DESCENT);
  for (const seconds of [0, COUNT / 2, COUNT - LIMIT]) {
    const after = new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString();
    const { rows, pages } = await readPages(client, organizationId, after, "vch_zzz");
    expect(rows).toBe(LIMIT);
    expect(pages).toBeLessThanOrEqual(LIMIT * PAGES_PER_ROW + PAGES_OF_DESCENT);
  }
  if (client !== early) client.release(true);
});

async function prepared(): Promise<pg.PoolClient> {
  const client = await pool.connect();
  await client.query(`PREPARE page AS ${STATEMENT?.text}`);
  await client.query("EXECUTE page('', 'epoch', '', 'epoch', 1)");
  return client;
}

/** Reads one page of the list, and counts the database pages that this reads. */
async function readPages(client: pg.PoolClient, organizationId: string, after: string, voucherId = "") {
  const execute = `EXECUTE page('${organizationId}', '${after}', '${voucherId}', '2027-01-01', ${LIMIT})`;
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute}`);
  const plan = rows[0]["QUERY PLAN"][0].Plan;
  return {
    rows: plan["Actual Rows"] as number,
    pages: (plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]) as number,
  };
}
