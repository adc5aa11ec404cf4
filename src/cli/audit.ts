import type { Command } from "commander";
import { type AdminAct, selectActs } from "../db/admin-acts.ts";
import { action, integer } from "./command.ts";

/** Most acts that are listed at once. */
const LIMIT_MAX = 10_000;
const LIMIT = 20;

/** `audit`: what administration did. */
export function addAuditCommands(program: Command): void {
  const audit = program.command("audit").description("what was done with these commands, by whom and when");
  action<{ limit: number; entity?: string }>(
    audit
      .command("list")
      .description("show recorded acts, the newest first")
      .option("--limit <n>", "how many", integer(1, LIMIT_MAX), LIMIT)
      .option("--entity <id>", "only what was done to this organization, key, batch, …"),
    async (ctx, options) => {
      const acts = await selectActs(ctx.pool, options.entity ?? null, options.limit);
      ctx.print({ acts }, acts.map(inWords).join("\n") || "Nothing was done yet.");
    },
  );
}

function inWords(act: AdminAct): string {
  return `${act.at.toISOString()}  ${act.osUser}@${act.host}  ${act.command}  ${act.entityId}`;
}
