import { writeBatch } from "../acts/issue-batch.ts";
import { type AuditContext, auditedCommand } from "../acts/with-audit-entry.ts";
import type { Audience } from "../core/voucher/voucher.ts";
import type { DemoPart } from "../wing.ts";
import { acceptContract, createLink, createListing, offerContract } from "./acts.ts";

/** Number of vouchers in each listed batch. */
const BATCH_SIZE = 20;
const ALWAYS = { opensAt: null, closesAt: null };

async function listBatch(
  ctx: AuditContext,
  terms: { productId: string; validUntil: Date },
  audience: Audience,
): Promise<string> {
  const windows = { claim: ALWAYS, buy: ALWAYS };
  const input = { ...terms, count: BATCH_SIZE, audience, windows, codes: null };
  const { id } = await writeBatch(ctx, input, () => undefined);
  return (await createListing.run(ctx, id, {})).id;
}

/**
 * Lists two batches of a demo on the marketplace, and returns commands for its users. The users are new, so the claims
 * and payments of earlier demos do not affect them.
 */
const show: DemoPart["show"] = async (admin, { organizationId, brandId, productId, validUntil }, mintToken) => {
  const ctx = { ...admin, audited: auditedCommand("demo make", {}) };
  const name = organizationId.slice(-6);
  const users = [`demo-user-${name}`, `demo-referrer-${name}`] as const;
  const openListingId = await listBatch(ctx, { productId, validUntil }, "OpenToAll");
  const referrersListingId = await listBatch(ctx, { productId, validUntil }, "ReferrerOnly");
  const { id: contractId } = await offerContract.run(ctx, brandId, { user: users[1], endsAt: null });
  await acceptContract.run(ctx, contractId, {});
  const { url } = await createLink.run(ctx, contractId, { product: productId });
  const [user, referrer] = await Promise.all(users.map(mintToken));
  const buy = (listingId: string, who: string, payment: number) =>
    `curl -s $API/marketplace/listings/${listingId}/buy -H "Authorization: Bearer $${who}_TOKEN" \
-d '{"paymentRef":"payment-${payment}"}'`;
  return `Users take vouchers from open windows. These tokens are valid for a day;
npm run voucherctl -- user token --user … creates more:

  export USER_TOKEN=${user}
  export REFERRER_TOKEN=${referrer}

  # Which batches are listed, and can this user buy them?
  curl -s $API/marketplace/listings -H "Authorization: Bearer $USER_TOKEN"

  # Buy from the open listing. The referrer-only listing refuses the user with 403 and sells to the referrer.
  ${buy(openListingId, "USER", 1)}
  ${buy(referrersListingId, "USER", 2)}
  ${buy(referrersListingId, "REFERRER", 3)}

  # Claim through the referrer's link.
  curl -s -X POST ${url}/claim -H "Authorization: Bearer $USER_TOKEN"
`;
};

export const demo: DemoPart = { option: "marketplace", about: "users who claim and buy vouchers", show };
