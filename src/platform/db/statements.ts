import { readFileSync } from "node:fs";
import type { FieldDef, QueryConfig } from "pg";
import type { Column, Columns, Row } from "./columns.ts";
import type { Queryable } from "./queryable.ts";

/** A named statement. Postgres prepares it once per connection, under its name. */
export interface Statement {
  name: string;
  text: string;
}

/**
 * Reads every statement of a `.sql` file, by name. Each comes after a line `-- name: <name>(<parameters>)` and comments. The parameters are
 * those of `$1`, `$2` and so on. One with a question mark may be null; one that the statement casts to an array may have null elements.
 */
export function readStatements(file: URL): Record<string, Statement & { parameters: string[] }> {
  const blocks = readFileSync(file, "utf8").matchAll(/^-- name: (\w+)(?:\(([^)]*)\))?\n((?:--.*\n)*)([^;]*);/gm);
  return Object.fromEntries(
    Array.from(blocks, ([, name = "", list = "", , text = ""]) => [
      name,
      { name, text, parameters: list.match(/\w+/g) ?? [] },
    ]),
  );
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
type Values = (Scalar | readonly Scalar[])[];

/** One array per field, for a statement that writes or reads many rows and joins the arrays again with `unnest`. */
export function columnsOf<Field extends string>(
  rows: readonly Readonly<Record<Field, Scalar>>[],
  ...fields: readonly Field[]
): Scalar[][] {
  return fields.map((field) => rows.map((row) => row[field]));
}

/** Runs a statement with its parameters. A module names their types: `sql.rows(…)<[id: string, limit: number]>`. */
type Run<Result> = <Parameters extends Values>(db: Queryable, ...values: Parameters) => Promise<Result>;

/** The only column of a result. */
type OneColumn<T> = Record<string, Column<T>>;

/**
 * The statements of the `.sql` file of a module, as functions. The file says what each statement does and names its parameters;
 * `test/platform/db/statements.test.ts` compares the result columns that the module declares with Postgres.
 */
export class Statements {
  readonly #statements: Record<string, Statement>;
  /** The result columns of each statement that the module uses. */
  readonly columns: Record<string, Columns> = {};

  constructor(file: URL) {
    this.#statements = readStatements(file);
  }

  /** All rows. `pg` returns the values as arrays, because it takes ten times as long to make objects. */
  rows<C extends Columns>(name: string, columns: C): Run<Row<C>[]> {
    const statement = this.#declare(name, columns);
    // The first result shows the order of the columns.
    let toRow: ((values: readonly unknown[]) => Row<C>) | undefined;
    return async (db, ...values) => {
      const { rows, fields } = await db.query<unknown[]>({ ...statement, values, rowMode: "array" });
      if (rows.length === 0) return [];
      toRow ??= makeRowReader(columns, fields);
      return rows.map(toRow);
    };
  }

  /** The first row, or null. */
  row<C extends Columns>(name: string, columns: C): Run<Row<C> | null> {
    const read = this.rows(name, columns);
    return async (db, ...values) => (await read(db, ...values))[0] ?? null;
  }

  /** The first row. @throws Error when there is none. */
  requiredRow<C extends Columns>(name: string, columns: C): Run<Row<C>> {
    const read = this.rows(name, columns);
    return async (db, ...values) => {
      const [row] = await read(db, ...values);
      if (row === undefined) throw new Error(`the statement ${name} returned no row`);
      return row;
    };
  }

  /** The values of the only column. */
  values<T>(name: string, column: OneColumn<T>): Run<T[]> {
    const read = this.rows(name, column);
    const [key = ""] = Object.keys(column);
    return async (db, ...values) => (await read(db, ...values)).map((row) => row[key] as T);
  }

  /** The first value of the only column, or null. */
  value<T>(name: string, column: OneColumn<T>): Run<T | null> {
    const read = this.values(name, column);
    return async (db, ...values) => (await read(db, ...values))[0] ?? null;
  }

  /** The first value of the only column. @throws Error when there is no row. */
  requiredValue<T>(name: string, column: OneColumn<T>): Run<T> {
    const read = this.requiredRow(name, column);
    const [key = ""] = Object.keys(column);
    return async (db, ...values) => (await read(db, ...values))[key] as T;
  }

  /** How many rows it wrote or returned. */
  execute(name: string): Run<number> {
    const prepare = this.prepare(name);
    return async (db, ...values) => (await db.query(prepare(...values))).rowCount ?? 0;
  }

  /** Whether it wrote or returned one row. */
  executeOne(name: string): Run<boolean> {
    const execute = this.execute(name);
    return async (db, ...values) => (await execute(db, ...values)) === 1;
  }

  /** The statement with its parameters, to run later. */
  prepare(name: string, columns: Columns = {}): <Parameters extends Values>(...values: Parameters) => QueryConfig {
    const statement = this.#declare(name, columns);
    return (...values) => ({ ...statement, values });
  }

  /** The statement with one array per field of the rows and then its other parameters, to run later. None if there are no rows. */
  prepareAll<Field extends string>(name: string, ...fields: readonly Field[]) {
    const prepare = this.prepare(name);
    return <R extends Readonly<Record<Field, Scalar>>, Parameters extends Values = []>(
      rows: readonly R[],
      ...values: Parameters
    ): PreparedStatements => (rows.length === 0 ? [] : [prepare(...columnsOf(rows, ...fields), ...values)]);
  }

  #declare(name: string, columns: Columns): Statement {
    const statement = this.#statements[name];
    if (statement === undefined) throw new Error(`there is no statement ${name}`);
    this.columns[name] = columns;
    return { name, text: statement.text };
  }
}
