import { readDeploymentId } from "../../db/deployment.ts";
import type { Transaction } from "../../db/pool.ts";
import { findClosedUntil, trustClock } from "../../db/redemptions.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";

/**
 * Says that the database's clock is right, after it jumped. Lists of redemptions then reach to the present again, and redemptions are no longer
 * dated later than the clock. Returns the time to which lists reached before and reach now.
 */
export async function trustDatabaseClock(ctx: AuditContext): Promise<{ before: Date; after: Date }> {
  const id = await readDeploymentId(ctx.pool);
  const before = await findClosedUntil(ctx.pool);
  const work = async (tx: Transaction) => {
    await trustClock(tx);
    return findClosedUntil(tx);
  };
  const after = await withAuditEntry(ctx, { type: "Deployment", id }, work, { before, after: (closed) => closed });
  return { before: before.closedUntil, after: after.closedUntil };
}
