/** A result column: its Postgres type, and the TypeScript type as which `pg` reads it. */
export interface Column<T> {
  /** The type as spelled by Postgres's function `format_type`. */
  readonly type: string;
  /** Whether the value may be null, or may be an array with null elements. */
  readonly nullable?: boolean;
  /** For the compiler only. Never set. */
  readonly value?: T;
}

/** Columns with names like `"group.member"`, which are read as one object. Null if the outer join found no row. */
interface Group<Members extends Record<string, Column<unknown>>> {
  /** The first column must be null exactly when the join found no row. */
  readonly members: Members;
}

/** The columns of a statement's result, by their names in SQL. */
export type Columns = Record<string, Column<unknown> | Group<Record<string, Column<unknown>>>>;

/** The TypeScript type of a result row. */
export type Row<C extends Columns> = {
  [Name in keyof C]: C[Name] extends Column<infer T>
    ? T
    : C[Name] extends Group<infer Members>
      ? Row<Members> | null
      : never;
};

export const integer: Column<number> = { type: "integer" };
export const bigint: Column<number> = { type: "bigint" };
export const smallint: Column<number> = { type: "smallint" };
export const bytea: Column<Buffer> = { type: "bytea" };
export const real: Column<number> = { type: "real" };
export const double: Column<number> = { type: "double precision" };
export const numeric: Column<number> = { type: "numeric" };
export const boolean: Column<boolean> = { type: "boolean" };
export const text: Column<string> = { type: "text" };
export const uuid: Column<string> = { type: "uuid" };
export const timestamptz: Column<Date> = { type: "timestamp with time zone" };

/** A text column that holds only the values of the type `T`. */
export function textOf<T extends string>(): Column<T> {
  return { type: "text" };
}

export function json<T>(): Column<T> {
  return { type: "json" };
}

export function jsonb<T>(): Column<T> {
  return { type: "jsonb" };
}

export function arrayOf<T>(column: Column<T>): Column<T[]> {
  return { type: `${column.type}[]`, nullable: column.nullable ?? false };
}

export function orNull<T>(column: Column<T>): Column<T | null> {
  return { type: column.type, nullable: true };
}

export function outerJoined<Members extends Record<string, Column<unknown>>>(members: Members): Group<Members> {
  return { members };
}
