import { openBulkhead } from "../core/callers/bulkhead.ts";
import { ISSUER_CALLS } from "../core/callers/caller-kinds.ts";
import type { Config } from "../platform/config.ts";
import { type AdministrationDeps, openAdministration } from "./open-administration.ts";

/** One connection is for checking that the keys of long acts are still valid. The acts use the others. */
const WATCHING_CONNECTIONS = 1;

/**
 * Opens what the issuer API needs: connections, the limit on calls that use them, and a signal that ends long acts when
 * the process closes. Null if the issuer API is off.
 */
export function openIssuer(ctx: AdministrationDeps & { config: Pick<Config, "issuer"> }) {
  const { databaseUrl } = ctx.config.issuer;
  if (databaseUrl === null) return null;
  const max = ISSUER_CALLS.connections + WATCHING_CONNECTIONS;
  const pool = openAdministration(ctx, { databaseUrl, max, applicationName: "api-issuer" });
  return { pool, calls: openBulkhead(ISSUER_CALLS), stopping: ctx.endRuns };
}
