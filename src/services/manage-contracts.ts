import { createHash } from "node:crypto";
import { findContractStatus, insertContract, insertLink, moveContract } from "../db/contracts.ts";
import { violates } from "../db/transaction.ts";
import { CONTRACT_MOVES } from "../domain/audience.ts";
import { makeLinkCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import { type ActContext, recordAct } from "./record-act.ts";

/**
 * Offers a user a referrer contract with a brand.
 * @throws AppError `invalid_request` when the two have an open one.
 */
export async function offerContract(
  ctx: ActContext,
  contract: { brandId: string; userId: string; endsAt: Date | null },
): Promise<string> {
  const id = newId("ctr");
  try {
    await recordAct(ctx, { type: "ReferrerContract", id }, (tx) => insertContract(tx, { ...contract, id }));
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
export async function changeContract(ctx: ActContext, id: string, to: keyof typeof CONTRACT_MOVES): Promise<void> {
  await recordAct(ctx, { type: "ReferrerContract", id }, async (tx) => {
    if (await moveContract(tx, id, to, CONTRACT_MOVES[to])) return;
    const status = await findContractStatus(tx, id);
    if (status === null) throw new AppError("not_found", `There is no contract ${id}.`);
    throw new AppError("invalid_request", `The contract is ${status} and cannot become ${to}.`);
  });
}

/**
 * Makes a referrer's link to a product of their contract's brand.
 * @returns the link's code.
 * @throws AppError `not_found` when contract and product are not both there and of one brand.
 */
export async function makeLink(ctx: ActContext, contractId: string, productId: string): Promise<string> {
  const code = makeLinkCode(ctx.randomBytes);
  const id = createHash("sha256").update(code).digest("hex");
  await recordAct(ctx, { type: "ReferralLink", id }, async (tx) => {
    if (!(await insertLink(tx, code, contractId, productId))) {
      throw new AppError("not_found", `There is no contract ${contractId} with the brand of a product ${productId}.`);
    }
  });
  return code;
}
