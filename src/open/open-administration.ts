import type pg from "pg";
import type { Logger } from "pino";
import type { DatabaseFence } from "../platform/db/database-fence.ts";
import { openPool } from "../platform/db/pool.ts";
import type { Lifetime } from "../platform/lifetime.ts";

/**
 * If a reply takes longer than this, the administration connection counts as lost. The longest statement of an act, a
 * search of all audit entries, takes less time. Milliseconds.
 */
const ANSWER_TIMEOUT_MS = 120_000;

export type AdministrationDeps = Lifetime & { deployment: Pick<DatabaseFence, "admitLogin" | "clock">; log: Logger };

/**
 * Opens an API process's connections with the rights of voucherctl. They are read-only except within `withAuditEntry`,
 * and connect only to the database server that the process itself uses.
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
