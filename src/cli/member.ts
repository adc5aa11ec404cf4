import { Option } from "commander";
import { MEMBER_ROLES, type MemberRole } from "../domain/audience.ts";
import { addMember } from "../services/admin/manage-contracts.ts";
import { action, type Noun } from "./command.ts";
import { subject } from "./option-parsers.ts";

export const member: Noun = {
  name: "member",
  description: "members of an organization",
  addVerbs(noun) {
    action<{ org: string; user: string; role: MemberRole }>(
      noun
        .command("add")
        .description("add a member or change a member's role; owners can claim and buy vouchers of any audience")
        .requiredOption("--org <id>", "the organization")
        .requiredOption("--user <sub>", "the subject of the user's tokens", subject)
        .addOption(new Option("--role <role>", "their role").choices(MEMBER_ROLES).makeOptionMandatory()),
      ["member add --org org_… --user alice --role owner"],
      async (ctx, { org, user, role }) => {
        const member = { organizationId: org, user, role };
        await addMember(ctx, member);
        ctx.print(member, () => `${user} is ${role} of ${org}.`);
      },
    );
  },
};
