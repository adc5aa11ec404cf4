import type pg from "pg";
import type { Logger } from "pino";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { openPool } from "../platform/db/pool.ts";
import type { Lifetime } from "../platform/lifetime.ts";

/**
 * If a reply takes longer than this, an administration connection counts as lost. No statement of an act takes so long.
 * The longest is a search of all audit entries. Milliseconds.
 */
const ANSWER_TIMEOUT_MS = 120_000;

export type AdministrationDeps = Lifetime & { deployment: Pick<DatabaseFence, "admitLogin" | "clock">; log: Logger };

/**
 * Opens an API process's connections with the rights of voucherctl. They are read-only except within `withAuditEntry`,
 * and connect only to the database server that the process uses.
 */
export function openAdministration(
  { deployment, log, use }: AdministrationDeps,
  options: { databaseUrl: string; max: number; applicationName: string },
): pg.Pool {
  const pool = openPool({
    ...options,
    use: "administration",
    deployment: { admit: (client) => deployment.admitLogin(client), clock: deployment.clock },
    readOnly: true,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    log,
  });
  use({ close: () => pool.end() });
  return pool;
}
