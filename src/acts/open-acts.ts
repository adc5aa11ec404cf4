import type pg from "pg";
import type { Logger } from "pino";
import type { RandomBytes } from "../platform/base32.ts";
import { openPool } from "../platform/db/pool.ts";
import { pooledRandomBytes } from "../platform/random.ts";

/** The dependencies of voucherctl, and of steps of `npm start` that prepare the database. They load no BullMQ. */
export interface AdminContext {
  log: Logger;
  pool: pg.Pool;
  randomBytes: RandomBytes;
  /** Closes everything that the context opened. */
  close(): Promise<void>;
}

/** Opens the context of a command. Its connections are read-only, except within `withAuditEntry`. */
export function openAdminContext(databaseUrl: string, log: Logger): AdminContext {
  const pool = openPool({
    databaseUrl,
    max: 2,
    applicationName: "voucherctl",
    use: "administration",
    deployment: null,
    readOnly: true,
    log,
  });
  return { log, pool, randomBytes: pooledRandomBytes, close: () => pool.end() };
}
