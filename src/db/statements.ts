import { readFileSync } from "node:fs";
import type { QueryConfig, QueryResultRow } from "pg";
import type { Columns, Row } from "./columns.ts";
import type { Queryable } from "./pool.ts";

/** A named statement. Postgres prepares it once per connection, under its name. */
export interface Statement {
  name: string;
  text: string;
}

/** A statement with the columns of its result; none for a statement that returns no rows. */
export interface TypedStatement<C extends Columns> extends Statement {
  columns: C;
  /** Builds the row that callers read from the one that `pg` returns. Null: they are the same. */
  nest: ((flat: QueryResultRow) => Row<C>) | null;
}

/**
 * Loads a module's `.sql` file and declares the result columns, which `test/db/statements.test.ts` compares with Postgres.
 * @throws Error unless `columns` names exactly the statements of the file.
 */
export function loadStatements<const All extends Record<string, Columns>>(
  file: URL,
  columns: All,
): { [Name in keyof All]: TypedStatement<All[Name]> } {
  const statements = readStatements(file);
  const found = Object.keys(statements).sort().join(", ");
  const declared = Object.keys(columns).sort().join(", ");
  if (found !== declared) throw new Error(`${file.pathname} has the statements ${found}, not ${declared}`);
  return Object.fromEntries(
    Object.entries(columns).map(([name, its]) => [name, { ...statements[name], columns: its, nest: nesting(its) }]),
  ) as { [Name in keyof All]: TypedStatement<All[Name]> };
}

/** Reads every statement of a `.sql` file, by name. Each one follows a line `-- name: <statement>` and comments on it. */
export function readStatements(file: URL): Record<string, Statement> {
  const statements: Record<string, Statement> = {};
  for (const block of readFileSync(file, "utf8")
    .split(/^-- name: /m)
    .slice(1)) {
    const [name = "", ...lines] = block.split("\n");
    const text = lines.filter((line) => !line.startsWith("--")).join("\n");
    statements[name.trim()] = { name: name.trim(), text: text.trim().replace(/;$/, "") };
  }
  return statements;
}

function nesting<C extends Columns>(columns: C): TypedStatement<C>["nest"] {
  const fields = Object.entries(columns).map(([name, column]) => ({
    name,
    members: "members" in column ? Object.keys(column.members).map((key) => ({ key, from: `${name}.${key}` })) : null,
  }));
  if (fields.every(({ members }) => members === null)) return null;
  return (flat) => {
    const row: Record<string, unknown> = {};
    for (const { name, members } of fields) {
      if (members === null) row[name] = flat[name];
      else if (flat[members[0]?.from ?? ""] === null) row[name] = null;
      else {
        const group: Record<string, unknown> = {};
        for (const { key, from } of members) group[key] = flat[from];
        row[name] = group;
      }
    }
    return row as Row<C>;
  };
}

/**
 * Statements that write, with their parameters, in the order in which they must run. Each writes all its rows or raises, or a constraint
 * raises at the commit, so their results need not be read. Pass them to `readThenWrite` or `write` (transaction.ts).
 */
export type PreparedStatements = QueryConfig[];

type Scalar = string | number | boolean | Date | Buffer | null;

/** What `pg` can always send. Any other parameter fails alone, and the COMMIT that was sent after it still takes effect. */
export type Values = (Scalar | readonly Scalar[])[];

/** A statement with its parameters, ready for `query`. */
export function prepare(statement: Statement, values: Values): QueryConfig {
  return { name: statement.name, text: statement.text, values };
}

/** One array per field, for a statement that writes or reads many rows and joins the arrays again with `unnest`. */
export function columnsOf<Field extends string>(
  rows: readonly Readonly<Record<Field, Scalar>>[],
  ...fields: readonly Field[]
): Scalar[][] {
  return fields.map((field) => rows.map((row) => row[field]));
}

/** Runs a statement and returns its rows. */
export async function readRows<C extends Columns>(
  db: Queryable,
  statement: TypedStatement<C>,
  values: Values,
): Promise<Row<C>[]> {
  const { rows } = await db.query(prepare(statement, values));
  return statement.nest === null ? (rows as Row<C>[]) : rows.map(statement.nest);
}

/** Runs a statement and returns its first row, or null. */
export async function readRow<C extends Columns>(
  db: Queryable,
  statement: TypedStatement<C>,
  values: Values,
): Promise<Row<C> | null> {
  return (await readRows(db, statement, values))[0] ?? null;
}

/** Runs a statement and returns how many rows it wrote or returned. */
export async function execute(db: Queryable, statement: Statement, values: Values): Promise<number> {
  const { rowCount } = await db.query(prepare(statement, values));
  return rowCount ?? 0;
}
