import type { AdminContext } from "../admin-context.ts";
import { findContractStatus, insertContract, insertLink, moveContract } from "../db/contracts.ts";
import { violates } from "../db/transaction.ts";
import { CONTRACT_MOVES } from "../domain/audience.ts";
import { makeLinkCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";

type Deps = Pick<AdminContext, "pool" | "randomBytes">;

/**
 * Offers a user a referrer contract with a brand.
 * @throws AppError `invalid_request` when the two have an open one.
 */
export async function offerContract(
  ctx: Deps,
  contract: { brandId: string; userId: string; endsAt: Date | null },
): Promise<string> {
  const id = newId("ctr");
  try {
    await insertContract(ctx.pool, { ...contract, id });
  } catch (error) {
    if (!violates(error, "referrer_contracts_one_open")) throw error;
    throw new AppError(
      "invalid_request",
      "This user has an open contract with this brand already. Decline or end that one first.",
      { cause: error },
    );
  }
  return id;
}

/**
 * Moves a contract: `Offered` to `Active` or `Declined`, `Active` to `Ended`.
 * @throws AppError `not_found`, or `invalid_request` when it is in another state.
 */
export async function changeContract(ctx: Deps, id: string, to: keyof typeof CONTRACT_MOVES): Promise<void> {
  if (await moveContract(ctx.pool, id, to, CONTRACT_MOVES[to])) return;
  const status = await findContractStatus(ctx.pool, id);
  if (status === null) throw new AppError("not_found", `There is no contract ${id}.`);
  throw new AppError("invalid_request", `The contract is ${status} and cannot become ${to}.`);
}

/**
 * Makes a referrer's link to a product of their contract's brand.
 * @returns the link's code.
 * @throws AppError `not_found` when contract and product are not both there and of one brand.
 */
export async function makeLink(ctx: Deps, contractId: string, productId: string): Promise<string> {
  const code = makeLinkCode(ctx.randomBytes);
  if (!(await insertLink(ctx.pool, code, contractId, productId))) {
    throw new AppError("not_found", `There is no contract ${contractId} with the brand of a product ${productId}.`);
  }
  return code;
}
