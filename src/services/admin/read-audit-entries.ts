import type pg from "pg";
import { type AuditEntry, selectAuditEntries } from "../../db/audit-entries.ts";

/** At most `limit` audit entries, newest first: those of one entity, or all if `entityId` is null. */
export function readAuditEntries(
  ctx: { pool: pg.Pool },
  entityId: string | null,
  limit: number,
): Promise<AuditEntry[]> {
  return selectAuditEntries(ctx.pool, entityId, limit);
}
