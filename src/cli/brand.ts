import { createBrand } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { name } from "./option-parsers.ts";

export const brand: Noun = {
  name: "brand",
  description: "brands of an organization",
  addVerbs(noun) {
    action<{ org: string; name: string }>(
      noun
        .command("create")
        .description("create a brand")
        .requiredOption("--org <id>", "the organization that owns it")
        .requiredOption("--name <name>", "its name, which partners see", name),
      ['brand create --org org_… --name "Corner Coffee"'],
      async (ctx, options) => {
        const id = await createBrand(ctx, options.org, options.name);
        ctx.print({ id }, () => `Brand ${options.name}: ${id}`);
      },
    );
  },
};
