import { createHash } from "node:crypto";
import { CONTRACT_MOVES, type MemberRole } from "../core/catalog/audience.ts";
import {
  findContractStatus,
  insertContract,
  insertLink,
  insertMember,
  moveContract,
} from "../core/catalog/db/contracts.ts";
import { makeLinkCode } from "../core/voucher/codes.ts";
import { newId } from "../core/voucher/ids.ts";
import { AppError } from "../platform/api/errors.ts";
import { assertFuture } from "./assert-future.ts";
import { type AuditContext, refuseIfTaken, withAuditEntry } from "./with-audit-entry.ts";

/** Makes a user a member of an organization, or changes their role. */
export async function addMember(
  ctx: AuditContext,
  { organizationId, user, role }: { organizationId: string; user: string; role: MemberRole },
): Promise<void> {
  const entity = { type: "Member", id: `${organizationId}/${user}` } as const;
  await withAuditEntry(ctx, entity, (tx) => insertMember(tx, { organizationId, userId: user, role }));
}

/**
 * Offers a contract and returns its id.
 * @throws AppError `invalid_request` when the user has an open one with the brand; PastTime.
 */
export async function offerContract(
  ctx: AuditContext,
  contract: { brandId: string; userId: string; endsAt: Date | null },
): Promise<string> {
  const id = newId("ctr");
  const taken = "This user already has an open contract with this brand. Decline or end it first.";
  const entity = { type: "ReferrerContract", id } as const;
  const offered = withAuditEntry(ctx, entity, async (tx) => {
    await assertFuture(tx, { endsAt: contract.endsAt });
    await insertContract(tx, { ...contract, id });
  });
  await refuseIfTaken("referrer_contracts_one_open", taken, offered);
  return id;
}

/**
 * Changes a contract's status.
 * @throws AppError `not_found`, or `invalid_request` unless CONTRACT_MOVES allows the change.
 */
export async function changeContract(ctx: AuditContext, id: string, to: keyof typeof CONTRACT_MOVES): Promise<void> {
  await withAuditEntry(ctx, { type: "ReferrerContract", id }, async (tx) => {
    if (await moveContract(tx, { id, status: to, allowed: CONTRACT_MOVES[to] })) return;
    const status = await findContractStatus(tx, id);
    if (status === null) throw new AppError("not_found", `There is no contract ${id}.`);
    throw new AppError("invalid_request", `The contract is ${status} and cannot become ${to}.`);
  });
}

/** Creates a link and returns its code. @throws AppError `not_found` unless contract and product share a brand. */
export async function makeLink(ctx: AuditContext, contractId: string, productId: string): Promise<string> {
  const code = makeLinkCode(ctx.randomBytes);
  const id = createHash("sha256").update(code).digest("hex");
  await withAuditEntry(ctx, { type: "ReferralLink", id }, async (tx) => {
    if (!(await insertLink(tx, { code, contractId, productId }))) {
      throw new AppError("not_found", `There is no contract ${contractId} with the brand of a product ${productId}.`);
    }
  });
  return code;
}
