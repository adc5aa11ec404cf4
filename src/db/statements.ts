import { readFileSync } from "node:fs";
import type { FieldDef, QueryConfig } from "pg";
import type { Columns, Row } from "./columns.ts";
import type { Queryable } from "./pool.ts";

/** A named statement. Postgres prepares it once per connection, under its name. */
export interface Statement {
  name: string;
  text: string;
}

/** A statement with the columns of its result; none if its rows are not read. */
export interface TypedStatement<C extends Columns> extends Statement {
  columns: C;
  /** Converts a row of values into a `Row`. Null until the first result, which shows the order of the columns. */
  rowReader: ((values: readonly unknown[]) => Row<C>) | null;
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
    Object.entries(columns).map(([name, resultColumns]) => [
      name,
      { ...statements[name], columns: resultColumns, rowReader: null },
    ]),
  ) as { [Name in keyof All]: TypedStatement<All[Name]> };
}

/** Reads every statement of a `.sql` file, by name. Each statement comes after a line `-- name: <statement>` and comments. */
export function readStatements(file: URL): Record<string, Statement> {
  const statements: Record<string, Statement> = {};
  const [, ...blocks] = readFileSync(file, "utf8").split(/^-- name: /m);
  for (const block of blocks) {
    const [name = "", ...lines] = block.split("\n");
    const text = lines.filter((line) => !line.startsWith("--")).join("\n");
    statements[name] = { name, text: text.trim().replace(/;$/, "") };
  }
  return statements;
}

/** Where to find the value of a column in the values of a row. */
interface Place {
  name: string;
  /** Position of the value. For a group, that of its first member, which is null if there is no group. */
  at: number;
  /** The members of a group; null for a single column. */
  members: readonly { name: string; at: number }[] | null;
}

function makeRowReader<C extends Columns>(
  columns: C,
  fields: readonly FieldDef[],
): (values: readonly unknown[]) => Row<C> {
  const at = (name: string) => fields.findIndex((field) => field.name === name);
  const places = Object.entries(columns).map(([name, column]): Place => {
    if (!("members" in column)) return { name, at: at(name), members: null };
    const members = Object.keys(column.members).map((member) => ({ name: member, at: at(`${name}.${member}`) }));
    return { name, at: members[0]?.at ?? -1, members };
  });
  return (values) => {
    const row: Record<string, unknown> = {};
    for (const { name, at, members } of places) {
      const value = values[at];
      if (members === null || value === null) row[name] = value;
      else {
        const group: Record<string, unknown> = {};
        for (const member of members) group[member.name] = values[member.at];
        row[name] = group;
      }
    }
    return row as Row<C>;
  };
}

/**
 * Statements that write, with their parameters, in the order in which they must run. One that lacks a required row raises, so their results
 * need not be read. Pass them to `readThenWrite` or `write` (transaction.ts).
 */
export type PreparedStatements = QueryConfig[];

type Scalar = string | number | boolean | Date | Uint8Array | null;

/** Parameters that `pg` can always send. With another one, only its statement fails, and a COMMIT sent after it still takes effect. */
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

/** Runs a statement and returns its rows. `pg` returns the values as arrays, because it takes ten times as long to make objects. */
export async function readRows<C extends Columns>(
  db: Queryable,
  statement: TypedStatement<C>,
  values: Values,
): Promise<Row<C>[]> {
  const { rows, fields } = await db.query<unknown[]>({ ...prepare(statement, values), rowMode: "array" });
  if (rows.length === 0) return [];
  statement.rowReader ??= makeRowReader(statement.columns, fields);
  return rows.map(statement.rowReader);
}

/** Runs a statement and returns its first row, or null. */
export async function readRow<C extends Columns>(
  db: Queryable,
  statement: TypedStatement<C>,
  values: Values,
): Promise<Row<C> | null> {
  return (await readRows(db, statement, values))[0] ?? null;
}

/** Runs a statement that must return a row, and returns the first one. @throws Error when there is none. */
export async function readRequiredRow<C extends Columns>(
  db: Queryable,
  statement: TypedStatement<C>,
  values: Values,
): Promise<Row<C>> {
  const row = await readRow(db, statement, values);
  if (row === null) throw new Error(`the statement ${statement.name} returned no row`);
  return row;
}

/** Runs a statement and returns how many rows it wrote or returned. */
export async function execute(db: Queryable, statement: Statement, values: Values): Promise<number> {
  const { rowCount } = await db.query(prepare(statement, values));
  return rowCount ?? 0;
}
