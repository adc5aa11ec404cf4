import type { Logger } from "pino";
import type { Config } from "../platform/config.ts";
import { openPool } from "../platform/db/pool.ts";
import type { Lifetime } from "../platform/lifetime.ts";

/**
 * Postgres connections of operators who change something: one issues or voids a batch, the others work meanwhile.
 * Opened on demand.
 */
const CONSOLE_CONNECTIONS_MAX = 3;

/**
 * Opens what the operator pages need to change something: connections with the rights of voucherctl, which are
 * read-only except within `withAuditEntry`, and a signal that ends long runs when the process closes. Null without
 * OPS_WRITABLE.
 */
export function openConsole({ config, log, use, endRuns }: { config: Pick<Config, "ops">; log: Logger } & Lifetime) {
  const { token, writable, databaseUrl } = config.ops;
  if (token === null || !writable) return null;
  const pool = openPool({
    databaseUrl,
    max: CONSOLE_CONNECTIONS_MAX,
    applicationName: "api-console",
    deployment: null,
    readOnly: true,
    log,
  });
  use({ close: () => pool.end() });
  return { pool, signal: endRuns };
}
