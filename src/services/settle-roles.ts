import { type AppliedRoles, applyRoles, type RoleName } from "../db/roles/apply-roles.ts";
import { type ActContext, recordAct } from "./record-act.ts";

/**
 * Makes the database's roles or settles their rights again, as {@link applyRoles}, and records what changed: all of it or nothing. A
 * password cannot be seen in what the database tells, so one that is set counts as a change.
 * @throws AppError `invalid_request` when a role could do more than its rights say.
 */
export async function settleRoles(ctx: ActContext, passwords: Record<RoleName, string | null>): Promise<AppliedRoles> {
  const { rows } = await ctx.pool.query<{ name: string }>("SELECT current_database() AS name");
  return recordAct(
    ctx,
    { type: "DatabaseRoles", id: rows[0]?.name ?? "" },
    (tx) => applyRoles(tx, ctx.randomBytes, passwords),
    {
      before: { passwordsSet: [] },
      after: ({ roles }) => ({ passwordsSet: roles.filter((role) => role.passwordSet).map((role) => role.name) }),
    },
  );
}
