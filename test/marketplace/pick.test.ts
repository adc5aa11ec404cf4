import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { newId } from "../../src/core/voucher/ids.ts";
import { readStatements } from "../../src/platform/db/statements.ts";
import { openServicePool } from "../support/servers.ts";
import { useDatabase } from "../support/use-service.ts";

/** The number of vouchers in the large batch, and how many of them are left. */
const COUNT = 10_000;
const LEFT = 100;
/** Maximum database pages that a pick of a voucher reads: an index descent and a few rows, for a batch of any size. */
const PAGES_MAX = 40;
/**
 * VACUUM and index scans can remove only dead rows that no older transaction can see. Autovacuum's ANALYZE of any table
 * is such a transaction and can start at any time, so the tests wait for its end.
 */
const UNTIL_DEAD_ROWS_ARE_INVISIBLE = { timeout: 30_000, interval: 100 };

const statements = readStatements(new URL("../../src/marketplace/db/acquisitions.sql", import.meta.url));
const PICKS = [
  { name: "pick_free_vouchers", parameters: ["'{}'", "1", "NULL"] },
  { name: "pick_voucher", parameters: ["NULL"] },
].map(({ name, parameters }) => ({
  name,
  text: statements[name]?.text ?? "",
  execute: (batchId: string) => `EXECUTE ${name}(${[`'${batchId}'`, ...parameters].join(", ")})`,
}));
type Pick = (typeof PICKS)[number];

const { servers, partner } = useDatabase();
let pool: pg.Pool;
/** This API prepared its statements before there was any voucher, like a process that has run for a long time. */
let early: pg.PoolClient;
let batchId: string;

beforeAll(async () => {
  pool = openServicePool(servers.databaseUrl, 2);
  early = await prepared();
  for (const { execute } of PICKS) await early.query(execute(""));
  // Only the tests run VACUUM on this table.
  await servers.db.query("ALTER TABLE vouchers SET (autovacuum_enabled = false)");
  batchId = await issueMany();
});

afterAll(async () => {
  early.release(true);
  await pool.end();
});

const WHEN = ["prepared before there was any voucher", "prepared now"];

describe.each(PICKS)("$name, when 99 % of a batch of 10 000 have just been acquired", (picking) => {
  it.each(
    WHEN,
  )("the picking statement scans index entries of acquired vouchers, but not their rows: %s", async (when) => {
    const { rows } = await servers.db.query("SELECT pg_relation_size('vouchers_pickable') / 8192 AS pages");
    await withClient(when, (client) => expectFewPages(client, picking, Number(rows[0].pages) + PAGES_MAX));
  });
});

describe("after VACUUM", () => {
  beforeAll(async () => {
    await vi.waitFor(async () => {
      await servers.db.query("VACUUM vouchers");
      const { rows } = await servers.db.query(
        "SELECT n_dead_tup::int AS dead FROM pg_stat_user_tables WHERE relname = 'vouchers'",
      );
      expect(rows).toEqual([{ dead: 0 }]);
    }, UNTIL_DEAD_ROWS_ARE_INVISIBLE);
  });

  it.each(
    PICKS.flatMap((picking) => WHEN.map((when) => ({ ...picking, when }))),
  )("the picking statement $name reads only a few database pages: $when", async ({ when, ...picking }) => {
    await withClient(when, (client) => expectFewPages(client, picking, PAGES_MAX));
  });

  it("pick_free_vouchers reads only a few database pages if all vouchers are acquired", async () => {
    await servers.db.query("UPDATE vouchers SET pickable = false WHERE batch_id = $1 AND pickable", [batchId]);
    const [picking] = PICKS as [Pick];
    expect(await pick(early, picking)).toBeNaN();
    const pages = async () => expect((await explain(early, picking)).pages).toBeLessThan(PAGES_MAX);
    await vi.waitFor(pages, UNTIL_DEAD_ROWS_ARE_INVISIBLE);
  });
});

async function prepared(): Promise<pg.PoolClient> {
  const client = await pool.connect();
  for (const { name, text } of PICKS) await client.query(`PREPARE ${name} AS ${text}`);
  return client;
}

/** Issues a large batch with a window, and marks 99 % of its vouchers as acquired. */
async function issueMany(): Promise<string> {
  const id = newId("bat");
  await servers.db.query(
    `INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
     VALUES ($1, $2, $3, 'infinity', 1, 1, 0)`,
    [id, partner.productId, COUNT],
  );
  await servers.db.query("INSERT INTO batch_windows (batch_id, kind) VALUES ($1, 'buy')", [id]);
  await servers.db.query(
    `INSERT INTO vouchers (serial, last_sequence, sealed_sequence, id, organization_id, batch_id, code, code_key,
                           sealed_hash, pickable)
     SELECT n, 1, 1, 'vch_' || $1 || '_' || lpad(n::text, 6, '0'), $2, $1, 'CODE' || n, 'CODE' || n,
            sha256(n::text::bytea), true
       FROM generate_series(1, $3::int) AS n`,
    [id, partner.organizationId, COUNT],
  );
  await servers.db.query(
    "UPDATE vouchers SET pickable = false, last_sequence = 2 WHERE batch_id = $1 AND serial <= $2",
    [id, COUNT - LEFT],
  );
  return id;
}

interface PlanNode {
  "Node Type": string;
  "Index Name"?: string;
  "Shared Hit Blocks": number;
  "Shared Read Blocks": number;
  Plans?: PlanNode[];
}

async function explain(
  client: pg.PoolClient,
  { execute }: Pick,
): Promise<{ pages: number; indexes: string[]; nodes: string[] }> {
  await client.query("BEGIN");
  const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${execute(batchId)}`);
  await client.query("ROLLBACK");
  const top: PlanNode = rows[0]["QUERY PLAN"][0].Plan;
  const all = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(all)];
  const nodes = all(top);
  return {
    pages: top["Shared Hit Blocks"] + top["Shared Read Blocks"],
    indexes: nodes.flatMap((node) => node["Index Name"] ?? []),
    nodes: nodes.map((node) => node["Node Type"]),
  };
}

async function pick(client: pg.PoolClient, { execute }: Pick): Promise<number> {
  await client.query("BEGIN");
  const { rows } = await client.query(execute(batchId));
  await client.query("ROLLBACK");
  return Number(rows[0]?.id.split("_").at(-1));
}

async function withClient(when: string | undefined, work: (client: pg.PoolClient) => Promise<void>): Promise<void> {
  if (when === WHEN[0]) return work(early);
  const client = await prepared();
  try {
    await work(client);
  } finally {
    client.release(true);
  }
}

/** Expects that a pick finds the next voucher by the index vouchers_pickable and reads fewer than `pagesMax` pages. */
async function expectFewPages(client: pg.PoolClient, picking: Pick, pagesMax: number): Promise<void> {
  expect(await pick(client, picking)).toBe(COUNT - LEFT + 1);
  const { indexes, nodes } = await explain(client, picking);
  expect(indexes).toContain("vouchers_pickable");
  expect(indexes).not.toContain("vouchers_serial");
  expect(nodes).not.toContain("Sort");
  expect(nodes).not.toContain("Seq Scan");
  const pages = async () => expect((await explain(client, picking)).pages).toBeLessThan(pagesMax);
  await vi.waitFor(pages, UNTIL_DEAD_ROWS_ARE_INVISIBLE);
}
