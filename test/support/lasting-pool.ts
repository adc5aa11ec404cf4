import pg from "pg";

/**
 * Opens a pool for a test that ends sessions or stops the server. A lost connection ends no process, whether it is idle
 * or someone uses it: the statement under way rejects.
 */
export function openLastingPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on("error", () => undefined);
  // pg emits the event on a connection in use, too, where the pool does not listen.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}
