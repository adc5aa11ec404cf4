import { adoptDatabase, readDeploymentId } from "../../db/deployment.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";

/** Gives a restored copy a new deployment id, so that the original's jobs, replies and leases do not apply to it. */
export async function adopt(ctx: AuditContext): Promise<{ id: string; before: string }> {
  const before = await readDeploymentId(ctx.pool);
  const id = await withAuditEntry(ctx, { type: "Deployment", id: before }, adoptDatabase);
  return { id, before };
}
