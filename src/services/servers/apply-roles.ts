import { type AppliedRoles, applyRoles, type RoleName } from "../../db/roles/apply-roles.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";

/**
 * Runs {@link applyRoles} and records the change in the same transaction. The database does not show passwords, so setting one always counts
 * as a change.
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
