import type { Command } from "commander";
import { AppError } from "../contract/errors.ts";
import { findNamesake } from "../db/catalog.ts";
import type { CommandContext, Interaction } from "./command.ts";

/**
 * Asks before creating a second organization, brand or product with the same name. Without a terminal, only warns. With `--force` or
 * `--json` it does neither, because scripts may reuse a name.
 * @param parentId the organization of a brand or the brand of a product; null for an organization.
 * @throws AppError `invalid_request` when the answer is no.
 */
export async function confirmName(
  ctx: CommandContext,
  parentId: string | null,
  { name, force }: { name: string; force?: boolean },
): Promise<void> {
  const namesake = force ? null : await findNamesake(ctx.pool, parentId, name);
  if (namesake === null) return;
  const found = `There is already ${namesake} with the name ${name}.`;
  const answer = await ctx.confirm(`${found} Create another one?`);
  if (answer === false) throw new AppError("invalid_request", "Nothing was created.");
  if (answer === null) ctx.warn(`${found} Another one is created.`);
}

/** Adds `--yes` to a command that destroys something. */
export function withYes(command: Command): Command {
  return command.option("--yes", "do not ask on a terminal");
}

/**
 * Asks before something is destroyed. Without a terminal and with `--yes` or `--json` does not ask.
 * @throws AppError `invalid_request` when the answer is no.
 */
export async function confirmLoss(ctx: Interaction, { yes }: { yes?: true }, loss: string): Promise<void> {
  if (!yes && (await ctx.confirm(`${loss} Continue?`)) === false) {
    throw new AppError("invalid_request", "Nothing was changed.");
  }
}
