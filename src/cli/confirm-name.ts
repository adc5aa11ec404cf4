import { AppError } from "../contract/errors.ts";
import { findNamesake } from "../db/catalog.ts";
import type { CommandContext } from "./command.ts";

/**
 * Asks before a second organization, brand or product of one name is created. Without a terminal it only warns, and with --json not
 * even that, because scripts may depend on using a name again. `--force` does neither.
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
