import { createBrand } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { confirmName } from "./confirm.ts";
import { formatUtc } from "./format.ts";
import { addList } from "./list.ts";
import { FORCE_NAME, name } from "./option-parsers.ts";

export const brand: Noun = {
  name: "brand",
  description: "brands of an organization",
  addVerbs(noun) {
    action<{ org: string; name: string; force?: boolean }>(
      noun
        .command("create")
        .description("create a brand")
        .requiredOption("--org <id>", "the organization that owns it")
        .requiredOption("--name <name>", "its name, which partners see", name)
        .option("--force", FORCE_NAME),
      ['brand create --org org_… --name "Corner Coffee"'],
      async (ctx, options) => {
        await confirmName(ctx, options.org, options);
        const id = await createBrand(ctx, options.org, options.name);
        ctx.print({ id }, () => `Brand ${options.name}: ${id}`);
        ctx.next(`voucherctl product create --brand ${id} --key KEY --name NAME --type TYPE …`);
      },
    );
    addList(noun, {
      list: "brands",
      cursor: /^brd_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, organizationId }) => ({
        cells: [id, formatUtc(createdAt), name],
        note: organizationId,
      }),
      examples: ["brand list --org org_…"],
    });
  },
};
