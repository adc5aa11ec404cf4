import { insertMember, MEMBER_ROLES } from "../../core/catalog/db/catalog.ts";
import { act } from "../act.ts";
import { choice, subject } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const addMember = act({
  name: "member add",
  on: "organization",
  creates: "member",
  role: "admin",
  title: "Add a member, or change a member's role",
  about: "Owners can claim and buy vouchers of any audience.",
  examples: ["--org org_… --user alice --role owner"],
  fields: {
    user: subject("User", { hint: "The subject of the user's tokens." }),
    role: choice("Role", MEMBER_ROLES),
  },
  async run(ctx, organizationId, { user, role }) {
    await withAuditEntry(ctx, { type: "Member", id: `${organizationId}/${user}` }, (tx) =>
      insertMember(tx, { organizationId, userId: user, role }),
    );
    return { organizationId, user, role };
  },
  said: ({ organizationId, user, role }) => `${user} is ${role} of ${organizationId}.`,
});
