import { adoptDatabase, readDeploymentId } from "../../db/deployment.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** The ids of an adopted deployment. */
export interface AdoptResult {
  /** The deployment's new id. */
  id: string;
  before: string;
}

/**
 * Gives the connected database a new deployment id. A restored copy needs this before processes may use it: from then on, jobs,
 * replies and leases of the original deployment do not apply to it.
 */
export async function adopt(ctx: AuditContext): Promise<AdoptResult> {
  const before = await readDeploymentId(ctx.pool);
  const id = await withAuditEntry(ctx, { type: "Deployment", id: before }, adoptDatabase);
  return { id, before };
}
