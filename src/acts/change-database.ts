import { findClosedUntil, trustClock } from "../core/redeem/db/redemptions.ts";
import { adoptDatabase, readDeploymentId } from "../platform/db/database-fence.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { type AppliedRoles, applyRoles, type RoleName } from "./roles/apply-roles.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Gives a restored copy a new deployment id, so that the original's jobs, replies and leases do not apply to it. */
export async function adopt(ctx: AuditContext): Promise<{ id: string; before: string }> {
  const before = await readDeploymentId(ctx.pool);
  const id = await withAuditEntry(ctx, { type: "Deployment", id: before }, adoptDatabase);
  return { id, before };
}

/**
 * Says that the database's clock is right, after it jumped. Lists of redemptions then reach to the present again, and
 * redemptions are no longer dated later than the clock. Returns the time to which lists reached before and reach now.
 */
export async function trustDatabaseClock(ctx: AuditContext): Promise<{ before: Date; after: Date }> {
  const id = await readDeploymentId(ctx.pool);
  const before = await findClosedUntil(ctx.pool);
  const trust = (tx: Transaction) => trustClock(tx).then(() => findClosedUntil(tx));
  const after = await withAuditEntry(ctx, { type: "Deployment", id }, trust, { before, after: (closed) => closed });
  return { before: before.closedUntil, after: after.closedUntil };
}

/**
 * Runs {@link applyRoles} and records the change in the same transaction. The database does not show passwords, so
 * setting one always counts as a change.
 * @throws AppError `invalid_request` when a role could do more than grants.sql gives it.
 */
export async function applyRoleGrants(
  ctx: AuditContext,
  passwords: Record<RoleName, string | null>,
): Promise<AppliedRoles> {
  const { rows } = await ctx.pool.query<{ name: string }>("SELECT current_database() AS name");
  return withAuditEntry(
    ctx,
    { type: "DatabaseRoles", id: rows[0]?.name ?? "" },
    (tx) => applyRoles(tx, ctx.randomBytes, passwords),
    {
      before: { passwordsSet: [] },
      after: ({ roles }) => ({ passwordsSet: roles.filter((role) => role.passwordSet).map((role) => role.name) }),
    },
  );
}
