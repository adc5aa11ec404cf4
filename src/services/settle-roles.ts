import { isDeepStrictEqual } from "node:util";
import { type Entity, insertAct, lockEntity, readEntityState } from "../db/admin-acts.ts";
import { type AppliedRoles, applyRoles, type RoleName } from "../db/roles/apply-roles.ts";
import { inTransaction } from "../db/transaction.ts";
import type { ActContext } from "./record-act.ts";

/**
 * Makes the database's roles or settles their rights again, as {@link applyRoles}, and records what changed: all of it or nothing. A
 * password cannot be seen in what the database tells, so one that is set counts as a change.
 * @throws AppError `invalid_request` when a role could do more than its rights say.
 */
export async function settleRoles(ctx: ActContext, passwords: Record<RoleName, string | null>): Promise<AppliedRoles> {
  return inTransaction(ctx.pool, async (tx) => {
    await tx.query("SET TRANSACTION READ WRITE");
    const { rows } = await tx.query<{ name: string }>("SELECT current_database() AS name");
    const entity: Entity = { type: "DatabaseRoles", id: rows[0]?.name ?? "" };
    await lockEntity(tx, entity);
    const before = { ...(await readEntityState(tx, entity)), passwordsSet: [] as string[] };
    const applied = await applyRoles(tx, ctx.randomBytes, passwords);
    const passwordsSet = applied.roles.filter((role) => role.passwordSet).map((role) => role.name);
    const after = { ...(await readEntityState(tx, entity)), passwordsSet };
    if (!isDeepStrictEqual(before, after)) await insertAct(tx, { ...ctx.act, entity, before, after });
    return applied;
  });
}
