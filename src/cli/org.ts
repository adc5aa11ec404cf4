import { markSandbox } from "../contract/fields.ts";
import { createOrganization } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { confirmName } from "./confirm.ts";
import { formatUtc } from "./format.ts";
import { addList } from "./list.ts";
import { FORCE_NAME, name } from "./option-parsers.ts";

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  addVerbs(noun) {
    action<{ name: string; sandbox?: boolean; force?: boolean }>(
      noun
        .command("create")
        .description("create an organization")
        .requiredOption("--name <name>", "its name", name)
        .option("--sandbox", "for tests: its keys begin with pvt_ and its vouchers have no value; permanent")
        .option("--force", FORCE_NAME),
      ['org create --name "Corner Shop"', 'org create --name "Corner Shop tests" --sandbox'],
      async (ctx, options) => {
        await confirmName(ctx, null, options);
        const { name, sandbox = false } = options;
        const id = await createOrganization(ctx, name, sandbox);
        ctx.print(
          { id, ...markSandbox(sandbox) },
          () => `${sandbox ? "Sandbox organization" : "Organization"} ${name}: ${id}`,
        );
        ctx.next(`voucherctl brand create --org ${id} --name NAME`);
      },
    );
    addList(noun, {
      list: "organizations",
      cursor: /^org_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, sandbox }) => ({
        cells: [id, formatUtc(createdAt), `${name}${sandbox ? " (sandbox)" : ""}`],
      }),
      examples: ['org list --name "corner"', "org list --limit 1000 --json"],
    });
  },
};
