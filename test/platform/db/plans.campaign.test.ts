import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readStatements } from "../../../src/platform/db/statements.ts";
import { openServicePool, openTestServers, type TestServers } from "../../support/servers.ts";
import { findStatementFiles } from "../../support/source-files.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { EXEMPT } from "./exempt-statements.ts";

const ROOT = new URL("../../../", import.meta.url);
/** Statements of administration. Some of them read many rows. */
const ADMINISTRATION = [
  "catalog.sql",
  "audit-entries.sql",
  "lists.sql",
  "erasures.sql",
  "operators.sql",
  "issue-references.sql",
];
/** Statements that read catalogs of Postgres, once per connection. */
const OF_SESSIONS = ["session.sql"];
/** Statements that may read the whole table of brands, because it has thousands of rows at most. */
const READS_BRANDS = [
  "select_organizations_with_brands",
  "select_brands_of_organization",
  "select_batches_of_organization",
];

const OTHERS = [...ADMINISTRATION, ...OF_SESSIONS];
const files = findStatementFiles().filter((file) => !OTHERS.some((other) => file.endsWith(`/${other}`)));
/** Checks the benchmark's baselines too, so that they are not slower because of their plans. */
const BASELINE = new URL("../../proof/bench/baselines/one-transaction.sql", import.meta.url);
const statements = [...files.map((file) => new URL(file, ROOT)), BASELINE]
  .flatMap((file) => Object.values(readStatements(file)))
  .filter((statement) => !EXEMPT.includes(statement.name));

const OPEN = { windows: { claim: { opensAt: null, closesAt: null } } };

/** States of the tables when a connection plans a statement. The connection keeps the plan until the next ANALYZE. */
const STATES: Record<string, (servers: TestServers) => Promise<unknown>> = {
  "were never filled": async () => undefined,
  "were known to be empty": ({ db }) => db.query("VACUUM (ANALYZE)"),
  "held a few rows": async ({ db }) => {
    const partner = await makePartner(db);
    await makeKey(db, partner.organizationId);
    await issueVouchers(db, partner, 20, OPEN);
    await reserve(db, "serial < 10");
    await redeem(db, "serial > 9");
    for (let batch = 0; batch < 10; batch++) await issueVouchers(db, partner, 60, OPEN);
    await db.query("VACUUM (ANALYZE)");
  },
  // According to the statistics no row is Live, Pending or in a window, so the planner expects one such row.
  "had just got their first rows in progress": async ({ db }) => {
    const partner = await makePartner(db);
    await makeKey(db, partner.organizationId);
    await issueVouchers(db, partner, 2_000);
    await redeem(db, "serial > 999");
    await db.query("VACUUM (ANALYZE)");
    await issueVouchers(db, partner, 1_000, OPEN);
    await reserve(db, "serial < 500 AND NOT pickable");
    await db.query(
      `INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
       SELECT now(), 2, id, 'Pending', 'voucher.instance.voided', '{}' FROM vouchers WHERE serial < 500`,
    );
  },
};

describe.each(Object.entries(STATES))("a statement that was planned while the tables %s", (_, fill) => {
  let servers: TestServers;
  let pool: pg.Pool;
  let columns: IndexColumns;

  beforeAll(async () => {
    servers = await openTestServers();
    await fill(servers);
    columns = await readIndexColumns(servers.db);
    pool = openServicePool(servers.ownerUrl);
  });

  afterAll(async () => {
    await pool.end();
    await servers.close();
  });

  it.each(statements)("the SQL statement $name finds each of its rows by an index", async ({ name, text }) => {
    await pool.query(`PREPARE ${name} AS ${text}`);
    const parameters = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), (match) => Number(match[1])));
    const values = parameters === 0 ? "" : `(${Array(parameters).fill("NULL").join(", ")})`;
    const { rows } = await pool.query(`EXPLAIN (FORMAT JSON, VERBOSE) EXECUTE ${name}${values}`);
    const searches = findSearches(rows[0]["QUERY PLAN"][0].Plan, columns);
    expect(searches.filter((each) => !(READS_BRANDS.includes(name) && / of brands by /.test(each)))).toEqual([]);
  });
});

function reserve(db: pg.Pool, which: string): Promise<void> {
  return insertReservations(db, which, "Live", "NULL");
}

/** Redeems by ticket. */
async function redeem(db: pg.Pool, which: string): Promise<void> {
  await insertReservations(db, which, "Consumed", "now()");
  await db.query(
    `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     SELECT date_trunc('milliseconds', now()), id, organization_id, 'key', 'attempt', 'code_' || serial,
            'order-' || serial
       FROM vouchers WHERE ${which}`,
  );
}

async function insertReservations(db: pg.Pool, which: string, state: string, endedAt: string): Promise<void> {
  await db.query(
    `INSERT INTO reservations
       (started_at, expires_at, ended_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
     SELECT now(), now() + interval '15 minutes', ${endedAt}, 'ticket_' || serial, id, organization_id,
            'key', '${state}', 'secret'
       FROM vouchers WHERE ${which}`,
  );
}

/** The columns of each index, by the index's name, and the columns of all indexes of a table, by the table's name. */
interface IndexColumns {
  ofIndex: Map<string, string[]>;
  ofTable: Map<string, string[]>;
}

async function readIndexColumns(db: pg.Pool): Promise<IndexColumns> {
  const { rows } = await db.query(
    `SELECT x.indexrelid::regclass::text AS index, x.indrelid::regclass::text AS table,
            array_agg(a.attname::text) AS columns
       FROM pg_index AS x JOIN pg_attribute AS a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey)
      WHERE x.indrelid::regclass::text NOT LIKE 'pg_%' GROUP BY 1, 2`,
  );
  const ofTable = new Map<string, string[]>();
  for (const row of rows) ofTable.set(row.table, [...(ofTable.get(row.table) ?? []), ...row.columns]);
  return { ofIndex: new Map(rows.map((row) => [row.index, row.columns])), ofTable };
}

/**
 * Finds the nodes of a plan that cost more than necessary: nodes that read a whole index or set up a cache, and nodes
 * that find rows by one indexed column and filter them by another.
 */
function findSearches(node: PlanNode, columns: IndexColumns): string[] {
  const below = (node.Plans ?? []).flatMap((plan) => findSearches(plan, columns));
  const { "Node Type": type, "Index Name": index = "", "Index Cond": found = "", Filter: sifted = "" } = node;
  const table = node["Relation Name"] ?? "";
  // Index entries of claimed vouchers remain until an index scan removes them. A bitmap scan only reads them.
  if (type === "Memoize" || (type === "Bitmap Index Scan" && index === "vouchers_pickable")) return [type, ...below];
  // A bitmap scan has its condition on a child node, which does not name the table.
  const reads =
    type === "Bitmap Index Scan" || (columns.ofTable.has(table) && type.endsWith("Scan") && !type.startsWith("Bitmap"));
  if (!reads) return below;
  const ofIndex = columns.ofIndex.get(index) ?? [];
  const unbound = ofIndex.filter((column) => !namesColumn(found, column));
  const searched = (columns.ofTable.get(table) ?? []).filter((column) => demandsValue(sifted, column));
  // A chain has only a few events, so a filter on the events of one chain is cheap.
  const ofOneChain = table === "voucher_events" && namesColumn(found, "voucher_id");
  // An index of one expression has no columns.
  const bound = ofIndex.length === 0 ? found !== "" : unbound.length < ofIndex.length;
  const fine = bound && (unbound.length === 0 || searched.length === 0 || ofOneChain);
  return fine ? below : [`${type} of ${table} by ${index}: ${found}, then ${sifted}`, ...below];
}

function namesColumn(condition: string, column: string): boolean {
  return new RegExp(`\\b${column}\\b`).test(condition);
}

function demandsValue(condition: string, column: string): boolean {
  return new RegExp(`\\b${column} = |= (\\w+\\.)?${column}\\b`).test(condition);
}

interface PlanNode {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Index Cond"?: string;
  Filter?: string;
  Plans?: PlanNode[];
}
