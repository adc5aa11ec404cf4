import { insertMember } from "../../db/contracts.ts";
import type { MemberRole } from "../../domain/audience.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** Makes a user a member of an organization, or changes their role. */
export async function addMember(
  ctx: AuditContext,
  member: { organizationId: string; user: string; role: MemberRole },
): Promise<void> {
  const { organizationId, user, role } = member;
  const entity = { type: "Member", id: `${organizationId}/${user}` } as const;
  await withAuditEntry(ctx, entity, (tx) => insertMember(tx, organizationId, user, role));
}
