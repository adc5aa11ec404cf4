import type { Command } from "commander";
import { insertBrand, insertOrganization } from "../db/catalogue.ts";
import { newId } from "../domain/ids.ts";
import { recordAct } from "../services/record-act.ts";
import { action } from "./command.ts";
import { name } from "./option-parsers.ts";

/** `org` and `brand`: who owns vouchers. */
export function addOrgCommands(program: Command): void {
  const org = program.command("org").description("organizations, which own brands and API keys");
  action<{ name: string }>(
    org.command("create").description("make an organization").requiredOption("--name <name>", "its name", name),
    ['org create --name "Corner Shop"'],
    async (ctx, options) => {
      const id = newId("org");
      await recordAct(ctx, { type: "Organization", id }, (tx) => insertOrganization(tx, id, options.name));
      await ctx.print({ id }, () => `Organization ${options.name}: ${id}`);
    },
  );
  const brand = program.command("brand").description("brands of an organization");
  action<{ org: string; name: string }>(
    brand
      .command("create")
      .description("make a brand")
      .requiredOption("--org <id>", "the organization that owns it")
      .requiredOption("--name <name>", "its name, as partners read it", name),
    ['brand create --org org_… --name "Corner Coffee"'],
    async (ctx, options) => {
      const id = newId("brd");
      await recordAct(ctx, { type: "Brand", id }, (tx) => insertBrand(tx, id, options.org, options.name));
      await ctx.print({ id }, () => `Brand ${options.name}: ${id}`);
    },
  );
}
