import { AppError } from "../platform/api/errors.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { findOlderSessions } from "../platform/db/working-sessions.ts";

/**
 * Refuses a change while processes of an earlier release are connected, because these processes do not recognize what
 * the change writes.
 * @param schema the first schema version whose processes recognize the change. By default, the latest.
 * @throws AppError with the given code.
 */
export async function assertUpgraded(
  tx: Transaction,
  schema?: number,
  code: "wrong_status" | "unavailable" = "wrong_status",
): Promise<void> {
  const sessions = await findOlderSessions(tx, schema);
  if (sessions === null) return;
  const sentence = "Processes of an earlier release use the database, and do not recognize this change";
  throw new AppError(code, `${sentence}: replace them, then repeat it (${sessions}).`);
}
