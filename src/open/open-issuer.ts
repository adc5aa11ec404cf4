import type { Logger } from "pino";
import { openBulkhead } from "../core/callers/bulkhead.ts";
import { ISSUER_CALLS } from "../core/callers/caller-kinds.ts";
import type { Config } from "../platform/config.ts";
import { openPool } from "../platform/db/pool.ts";
import type { Lifetime } from "../platform/lifetime.ts";

/** One connection looks whether the keys of long acts still work, while these use the others. */
const WATCHING_CONNECTIONS = 1;

/**
 * Opens what the issuer API needs: connections with the rights of voucherctl, which are read-only except within
 * `withAuditEntry`, the places on them, and a signal that ends long acts when the process closes. Null if the issuer
 * API is off.
 */
export function openIssuer({ config, log, use, endRuns }: { config: Pick<Config, "issuer">; log: Logger } & Lifetime) {
  const { databaseUrl } = config.issuer;
  if (databaseUrl === null) return null;
  const pool = openPool({
    databaseUrl,
    max: ISSUER_CALLS.connections + WATCHING_CONNECTIONS,
    applicationName: "api-issuer",
    deployment: null,
    readOnly: true,
    log,
  });
  use({ close: () => pool.end() });
  return { pool, calls: openBulkhead(ISSUER_CALLS), stopping: endRuns };
}
