import { markSandbox } from "../contract/sandbox.ts";
import { createOrganization } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { name } from "./option-parsers.ts";

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  addVerbs(noun) {
    action<{ name: string; sandbox?: boolean }>(
      noun
        .command("create")
        .description("create an organization")
        .requiredOption("--name <name>", "its name", name)
        .option("--sandbox", "for tests: its keys begin with pvt_ and its vouchers have no value; permanent"),
      ['org create --name "Corner Shop"', 'org create --name "Corner Shop tests" --sandbox'],
      async (ctx, { name, sandbox = false }) => {
        const id = await createOrganization(ctx, name, sandbox);
        ctx.print(
          { id, ...markSandbox(sandbox) },
          () => `${sandbox ? "Sandbox organization" : "Organization"} ${name}: ${id}`,
        );
      },
    );
  },
};
