import pg from "pg";

/**
 * Opens a pool for a test that ends sessions or stops the server. A lost connection, idle or in use, ends no process:
 * the running statement rejects.
 */
export function openLastingPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on("error", () => undefined);
  // pg also emits the event on a connection in use, where the pool does not listen.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}
