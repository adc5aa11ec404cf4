import { readFileSync } from "node:fs";
import type { FieldDef, QueryConfig } from "pg";
import { arrayOf, type Column, type Columns, type Row } from "./columns.ts";
import type { Queryable } from "./queryable.ts";

/** A named statement. Postgres prepares it once per connection, under its name. */
export interface SqlStatement {
  name: string;
  text: string;
}

/** A statement of a `.sql` file. */
interface ReadStatement extends SqlStatement {
  /** The names of `$1`, `$2` and so on. */
  parameters: string[];
  /** The parameters as a module declares them: `batchId, opensAt?`. */
  declaration: string;
}

/**
 * Reads every statement of a `.sql` file, by name. Each statement follows a line `-- name: <name>(<parameters>)` and
 * comments. A parameter with a question mark may be null. If the statement casts it to an array, the array may have
 * null elements.
 */
export function readStatements(file: URL): Record<string, ReadStatement> {
  const blocks = readFileSync(file, "utf8").matchAll(/^-- name: (\w+)(?:\(([^)]*)\))?\n((?:--.*\n)*)([^;]*);/gm);
  return Object.fromEntries(
    Array.from(blocks, ([, name = "", list = "", , text = ""]) => {
      const declared = list.match(/\w+\??/g) ?? [];
      const inCamelCase = (one: string) => one.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
      const parameters = declared.map((one) => one.replace("?", ""));
      return [name, { name, text, parameters, declaration: declared.map(inCamelCase).join(", ") }];
    }),
  );
}

/** Where a row's values contain the value of a column. */
interface Place {
  name: string;
  /** Index of the value in the row. For a group, of its first column, which is null if the join found no row. */
  at: number;
  /** The members of a group. Null for a single column. */
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
 * Statements that write, with their parameters, in the order in which they must run. Their results need not be read,
 * because a statement that lacks a required row raises an error. Pass them to `readThenWrite` or `write`
 * (transaction.ts).
 */
export type PreparedStatements = QueryConfig[];

type Scalar = string | number | boolean | Date | Uint8Array | null;

/**
 * Values that `pg` can always send. If it could not send the value of one statement, only that statement would fail,
 * and the COMMIT that follows it would still take effect.
 */
type Value = Scalar | readonly Scalar[];

/** The parameters of a statement, by their names in the header, in the same order. */
type Parameters = Record<string, Column<Value>>;

type Sent<T> = T extends readonly (infer E)[] ? readonly Sent<E>[] : T extends Uint8Array ? Uint8Array : T;
type Values<P extends Parameters> = { readonly [Name in keyof P]: P[Name] extends Column<infer T> ? Sent<T> : never };
type OnlyOne<Name, All = Name> = Name extends unknown ? ([All] extends [Name] ? Name : never) : never;

/** The arguments of a call: none, the only value, or all values by name, so that no values are swapped. */
type Arguments<P extends Parameters> = [keyof P] extends [never]
  ? []
  : [OnlyOne<keyof P>] extends [never]
    ? [values: Values<P>]
    : [value: Values<P>[keyof P]];

/** Converts rows to one array per field, by name, for a statement that joins the arrays with `unnest`. */
export function columnsOf<Field extends string, R extends Readonly<Record<Field, Scalar>>>(
  rows: readonly R[],
  ...fields: readonly Field[]
): { [F in Field]: R[F][] } {
  return Object.fromEntries(fields.map((field) => [field, rows.map((row) => row[field])])) as { [F in Field]: R[F][] };
}

/** Puts the arguments of a call into the order of the header. */
function ordering(parameters: Parameters = {}): (given: readonly unknown[]) => unknown[] {
  const names = Object.keys(parameters);
  if (names.length < 2) return (given) => [...given];
  return ([values]) => names.map((name) => (values as Record<string, unknown>)[name]);
}

type Run<P extends Parameters, Result> = (db: Queryable, ...values: Arguments<P>) => Promise<Result>;
/** For a statement without parameters. */
type None = Record<never, never>;

/** A result with one column. */
type OneColumn<T> = Record<string, Column<T>>;

/**
 * The statements of a module's `.sql` file, as functions. The file documents each statement and names its parameters.
 * `test/platform/db/statements.test.ts` checks the declared result columns and parameter types with Postgres.
 */
export class Statements {
  readonly #statements: Record<string, ReadStatement>;
  /** The result columns of each statement that the module uses. */
  readonly columns: Record<string, Columns> = {};
  /** The parameters of each statement that the module uses. */
  readonly parameters: Record<string, Parameters> = {};

  constructor(file: URL) {
    this.#statements = readStatements(file);
  }

  /** All rows. `pg` returns the values as arrays, because making objects takes ten times as long. */
  rows<C extends Columns, P extends Parameters = None>(name: string, columns: C, parameters?: P): Run<P, Row<C>[]> {
    const prepare = this.prepare(name, parameters, columns);
    // The first result tells the order of the columns.
    let toRow: ((values: readonly unknown[]) => Row<C>) | undefined;
    return async (db, ...values) => {
      const { rows, fields } = await db.query<unknown[]>({ ...prepare(...values), rowMode: "array" });
      if (rows.length === 0) return [];
      toRow ??= makeRowReader(columns, fields);
      return rows.map(toRow);
    };
  }

  /** The first row, or null. */
  row<C extends Columns, P extends Parameters = None>(name: string, columns: C, parameters?: P): Run<P, Row<C> | null> {
    const read = this.rows(name, columns, parameters);
    return async (db, ...values) => (await read(db, ...values))[0] ?? null;
  }

  /** The first row. @throws Error when there is none. */
  requiredRow<C extends Columns, P extends Parameters = None>(
    name: string,
    columns: C,
    parameters?: P,
  ): Run<P, Row<C>> {
    const read = this.rows(name, columns, parameters);
    return async (db, ...values) => {
      const [row] = await read(db, ...values);
      if (row === undefined) throw new Error(`the statement ${name} returned no row`);
      return row;
    };
  }

  /** The values of the only column. */
  values<T, P extends Parameters = None>(name: string, column: OneColumn<T>, parameters?: P): Run<P, T[]> {
    const read = this.rows(name, column, parameters);
    const [key = ""] = Object.keys(column);
    return async (db, ...values) => (await read(db, ...values)).map((row) => row[key] as T);
  }

  /** The first value of the only column, or null. */
  value<T, P extends Parameters = None>(name: string, column: OneColumn<T>, parameters?: P): Run<P, T | null> {
    const read = this.values(name, column, parameters);
    return async (db, ...values) => (await read(db, ...values))[0] ?? null;
  }

  /** The first value of the only column. @throws Error when there is no row. */
  requiredValue<T, P extends Parameters = None>(name: string, column: OneColumn<T>, parameters?: P): Run<P, T> {
    const read = this.requiredRow(name, column, parameters);
    const [key = ""] = Object.keys(column);
    return async (db, ...values) => (await read(db, ...values))[key] as T;
  }

  /** The number of rows that the statement wrote or returned. */
  execute<P extends Parameters = None>(name: string, parameters?: P): Run<P, number> {
    const prepare = this.prepare(name, parameters);
    return async (db, ...values) => (await db.query(prepare(...values))).rowCount ?? 0;
  }

  /** Whether the statement wrote or returned one row. */
  executeOne<P extends Parameters = None>(name: string, parameters?: P): Run<P, boolean> {
    const execute = this.execute(name, parameters);
    return async (db, ...values) => (await execute(db, ...values)) === 1;
  }

  /** The statement and its parameters, to run later. */
  prepare<P extends Parameters = None>(
    name: string,
    parameters?: P,
    columns: Columns = {},
  ): (...values: Arguments<P>) => QueryConfig {
    const statement = this.#declare(name, columns, parameters);
    const order = ordering(parameters);
    return (...values) => ({ ...statement, values: order(values) });
  }

  /** A statement that gets one array per field of the rows, and its other parameters. Empty if there are no rows. */
  prepareAll<Fields extends Record<string, Column<Scalar>>, P extends Parameters = None>(
    name: string,
    fields: Fields,
    parameters?: P,
  ): (rows: readonly Values<Fields>[], ...values: Arguments<P>) => PreparedStatements {
    const names = Object.keys(fields);
    const arrays = Object.entries(fields).map(([field, column]) => [field, arrayOf<Scalar>(column)]);
    const statement = this.#declare(name, {}, { ...Object.fromEntries(arrays), ...parameters });
    const order = ordering(parameters);
    return (rows, ...values) => {
      if (rows.length === 0) return [];
      const columns = columnsOf(rows as readonly Record<string, Scalar>[], ...names);
      return [{ ...statement, values: [...Object.values(columns), ...order(values)] }];
    };
  }

  /** Records a statement's columns and parameters. @throws Error if the header's parameters or their order differ. */
  #declare(name: string, columns: Columns, parameters: Parameters = {}): SqlStatement {
    const statement = this.#statements[name];
    if (statement === undefined) throw new Error(`there is no statement ${name}`);
    const declared = Object.entries(parameters).map(([key, { nullable }]) => (nullable ? `${key}?` : key));
    const declaration = declared.join(", ");
    if (declaration !== statement.declaration)
      throw new Error(`${name} has the parameters (${statement.declaration}), not (${declaration})`);
    this.columns[name] = columns;
    this.parameters[name] = parameters;
    return { name, text: statement.text };
  }
}
