import { createBrand } from "../acts/brand/create.ts";
import { acceptContract } from "../acts/contract/move.ts";
import { offerContract } from "../acts/contract/offer.ts";
import { type IssueInput, writeBatch } from "../acts/issue-batch.ts";
import { createKey } from "../acts/key/create.ts";
import { createLink, type LinkSite } from "../acts/link/create.ts";
import { createListing } from "../acts/listing/create.ts";
import type { AdminContext } from "../acts/open-acts.ts";
import { createOrganization } from "../acts/org/create.ts";
import { createProduct } from "../acts/product/create.ts";
import { type AuditContext, auditedCommand } from "../acts/with-audit-entry.ts";
import { SCOPES } from "../core/keys/api-keys.ts";
import { NO_CAPS } from "../core/keys/db/api-keys.ts";
import type { Audience } from "../core/voucher/voucher.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";
import { mintUserToken, type TokenClaims } from "./user-keys.ts";

/** The parts of a demo that a new user can try: a key, and the codes of a small batch. */
export interface Demo {
  organizationId: string;
  brandId: string;
  productId: string;
  keyId: string;
  key: string;
  codes: string[];
}

/** Number of vouchers in each batch. */
const BATCH_SIZE = 20;
const VALID_DAYS = 365;
/** How long the printed tokens are valid. Milliseconds. */
const TOKEN_MS = 86_400_000;

const auditedContext = <Admin extends AdminContext>(admin: Admin) => ({
  ...admin,
  audited: auditedCommand("demo make", {}),
});

/** Creates an organization with a brand, product, batch and key. May run any number of times on the same database. */
export async function makeDemo(admin: AdminContext, sandbox = false): Promise<Demo> {
  const ctx = auditedContext(admin);
  const { id: organizationId } = await createOrganization.run(ctx, "", { name: "Demo Partner", sandbox });
  const { id: brandId } = await createBrand.run(ctx, organizationId, { name: "Demo Brand" });
  const { id: productId } = await createProduct.run(ctx, brandId, {
    key: "demo-pass",
    name: "Demo Pass",
    type: "Subscription",
    retailPriceUsd: 29.9,
    priceUsd: 19.9,
    benefitMonths: 3,
    usageUnitLabel: null,
  });
  const { codes } = await issue(ctx, productId, "OpenToAll", {});
  const terms = { label: "demo", scopes: [...SCOPES], allowIps: [], expiresAt: null, ...NO_CAPS };
  const { id: keyId, key } = await createKey.run(ctx, organizationId, terms);
  return { organizationId, brandId, productId, keyId, key, codes };
}

async function issue(ctx: AuditContext, productId: string, audience: Audience, windows: IssueInput["windows"]) {
  const validUntil = new Date(Date.now() + VALID_DAYS * 86_400_000);
  const codes: string[] = [];
  const input = { productId, count: BATCH_SIZE, validUntil, audience, windows, codes: null };
  const { id } = await writeBatch(ctx, input, (vouchers) => void codes.push(...vouchers.map(({ code }) => code)));
  return { id, codes };
}

/** Makes a batch that users can claim and buy, and lists it on the marketplace. */
async function listBatch(ctx: AuditContext, productId: string, audience: Audience): Promise<string> {
  const always = { opensAt: null, closesAt: null };
  const { id } = await issue(ctx, productId, audience, { claim: always, buy: always });
  return (await createListing.run(ctx, id, {})).id;
}

/** The commands of a partner for a demo, to paste into a shell. Their lines have at most 80 columns. */
export function showDemo({ key, codes: [code, ...others] }: Demo, baseUrl: string): string {
  return `A demo partner's key, which is shown only once, and one of its vouchers:

  export API=${baseUrl} CODE=${code}
  export KEY=${key}
  # Other codes: ${others.slice(0, 2).join(" ")}

  # What is it worth?
  curl -s $API/partner/vouchers/$CODE -H "X-Api-Key: $KEY"
  # Reserve it for 15 minutes.
  curl -s $API/partner/vouchers/reserve -H "X-Api-Key: $KEY" \\
    -d "{\\"code\\":\\"$CODE\\"}"
  # Redeem it for an order. Run this twice: the order redeems it only once.
  curl -s $API/partner/vouchers/redeem -H "X-Api-Key: $KEY" \\
    -d "{\\"code\\":\\"$CODE\\",\\"externalRef\\":\\"order-$CODE\\"}"
`;
}

/**
 * Lists two batches of a demo on the marketplace, and returns commands for its users. The users are new, so the claims
 * and payments of earlier demos do not affect them.
 * @param claims the claims of the users' tokens, which the embedded servers accept.
 */
export async function showMarketplaceDemo(
  admin: AdminContext & LinkSite,
  demo: Demo,
  claims: TokenClaims,
): Promise<string> {
  const ctx = auditedContext(admin);
  const { brandId, productId, organizationId } = demo;
  const name = organizationId.slice(-6);
  const users = [`demo-user-${name}`, `demo-referrer-${name}`] as const;
  const openListingId = await listBatch(ctx, productId, "OpenToAll");
  const referrersListingId = await listBatch(ctx, productId, "ReferrerOnly");
  const { id: contractId } = await offerContract.run(ctx, brandId, { user: users[1], endsAt: null });
  await acceptContract.run(ctx, contractId, {});
  const { url } = await createLink.run(ctx, contractId, { product: productId });
  const [user, referrer] = await Promise.all(
    users.map((each) => mintUserToken(LOCAL_DIRECTORY, each, TOKEN_MS, claims)),
  );
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
}
