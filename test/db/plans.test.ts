import { readdirSync } from "node:fs";
import type pg from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openPool } from "../../src/db/pool.ts";
import { readStatements } from "../../src/db/statements.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";

const SQL = new URL("../../src/db/", import.meta.url);
/** Statements of administration: `find_batch` counts a whole batch, an act reads all of a key's secrets. */
const ADMINISTRATION = ["catalogue.sql", "admin-acts.sql"];
/** Reads the one row of a table of one row. */
const WHOLE_TABLE = ["select_canon_preserved_since"];

const statements = readdirSync(SQL)
  .filter((file) => file.endsWith(".sql") && !ADMINISTRATION.includes(file))
  .flatMap((file) => Object.values(readStatements(new URL(file, SQL))))
  .filter((statement) => !WHOLE_TABLE.includes(statement.name));

let servers: TestServers;
let pool: pg.Pool;

beforeAll(async () => {
  servers = await openTestServers();
  pool = openPool({
    databaseUrl: servers.ownerUrl,
    max: 1,
    applicationName: "plans",
    partnerFacing: true,
    log: pino({ level: "silent" }),
  });
});

afterAll(async () => {
  await pool.end();
  await servers.close();
});

it.each(statements)("$name reads no table from end to end, even when it was planned on empty tables", async ({
  name,
  text,
}) => {
  await pool.query(`PREPARE ${name} AS ${text}`);
  const parameters = Math.max(0, ...Array.from(text.matchAll(/\$(\d+)/g), (match) => Number(match[1])));
  const values = parameters === 0 ? "" : `(${Array(parameters).fill("NULL").join(", ")})`;
  const { rows } = await pool.query(`EXPLAIN EXECUTE ${name}${values}`);
  const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
  expect(plan).not.toMatch(/Seq Scan|Hash (Left |Right )?Join|Merge (Left |Right )?Join/);
});
