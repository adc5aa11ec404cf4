import type { Config } from "../platform/config.ts";
import { openPool } from "../platform/db/pool.ts";
import type { openService } from "./open-service.ts";

/**
 * Postgres connections of operators who change something: one issues or voids a batch, the others work meanwhile.
 * Opened on demand.
 */
const CONSOLE_CONNECTIONS_MAX = 3;

/**
 * Opens what the operator pages need to change something: connections with the rights of voucherctl, which are
 * read-only except within `withAuditEntry`, and a signal that ends long runs when the process stops. Null without
 * OPS_WRITABLE.
 */
export function openConsole({ log, onClose }: Pick<ReturnType<typeof openService>, "log" | "onClose">, config: Config) {
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
  onClose(() => pool.end());
  const stopping = new AbortController();
  return { pool, signal: stopping.signal, stop: () => stopping.abort() };
}
