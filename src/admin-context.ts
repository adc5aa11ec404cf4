import type pg from "pg";
import type { Logger } from "pino";
import { openPool } from "./db/pool.ts";
import type { RandomBytes } from "./domain/codes.ts";
import { pooledRandomBytes } from "./random.ts";

/** What administration has, and every process besides: the database. Kept apart, so that a command loads no queue. */
export interface AdminContext {
  log: Logger;
  pool: pg.Pool;
  randomBytes: RandomBytes;
  /** Closes what the context opened. */
  close(): Promise<void>;
}

const POOL_MAX = 2;

/** Opens what administration needs. Its connections write only in acts that are recorded. */
export function openAdminContext(databaseUrl: string, log: Logger): AdminContext {
  const pool = openPool({
    databaseUrl,
    max: POOL_MAX,
    applicationName: "voucherctl",
    partnerFacing: false,
    readOnly: true,

    log,
  });
  return { log, pool, randomBytes: pooledRandomBytes, close: () => pool.end() };
}
