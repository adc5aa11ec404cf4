import { createOrganization } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { name } from "./option-parsers.ts";

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  addVerbs(noun) {
    action<{ name: string }>(
      noun.command("create").description("create an organization").requiredOption("--name <name>", "its name", name),
      ['org create --name "Corner Shop"'],
      async (ctx, options) => {
        const id = await createOrganization(ctx, options.name);
        ctx.print({ id }, () => `Organization ${options.name}: ${id}`);
      },
    );
  },
};
