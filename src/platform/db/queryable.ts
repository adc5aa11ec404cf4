import type pg from "pg";

/** Runs statements. The pool, or one connection inside a transaction. */
export interface Queryable {
  query<Row extends pg.QueryResultRow>(
    query: (pg.QueryConfig & { rowMode?: "array" }) | string,
    values?: unknown[],
  ): Promise<pg.QueryResult<Row>>;
}

/** One connection with an open transaction. */
export type Transaction = pg.PoolClient;
