import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../../src/config.ts";
import { openPool } from "../../../src/db/pool.ts";

/** A pool for one transaction per request, with the settings of the service's own. */
export function openTransactionPool(config: Config, max: number, log: Logger): pg.Pool {
  return openPool({ databaseUrl: config.databaseUrl, max, applicationName: "baseline", partnerFacing: true, log });
}
