import pg from "pg";

/** Opens a pool that survives lost connections: the running statement rejects, and no process ends. */
export function openLastingPool(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  pool.on("error", () => undefined);
  // pg also emits `error` on a connection in use, where the pool does not listen.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}
