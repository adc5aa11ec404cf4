import { SCOPES } from "../domain/api-keys.ts";
import type { Audience } from "../domain/voucher.ts";
import type { AdminContext } from "../open-command.ts";
import { issueBatch } from "../services/admin/issue-batch.ts";
import { createBrand, createListing, createOrganization, createProduct } from "../services/admin/manage-catalog.ts";
import { changeContract, makeLink, offerContract } from "../services/admin/manage-contracts.ts";
import { createKey } from "../services/admin/manage-keys.ts";
import { type AuditContext, auditedCommand } from "../services/audit/with-audit-entry.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";
import { mintUserToken, type TokenClaims } from "./user-keys.ts";

/** What a newcomer can try: a key, the codes of a small batch, and batches with open windows. */
interface Demo {
  key: string;
  codes: string[];
  openListingId: string;
  referrersListingId: string;
  linkCode: string;
  /** Users that only this demo has, so that claims and payments of earlier demos do not count. */
  user: string;
  referrer: string;
}

/** Vouchers in each batch. */
const BATCH_SIZE = 20;
const VALID_DAYS = 365;
/** How long the printed tokens are valid. Milliseconds. */
const TOKEN_MS = 86_400_000;

/** Creates a new organization with brand, product, batches and key. May run any number of times on the same database. */
export async function makeDemo(admin: AdminContext): Promise<Demo> {
  const ctx = { ...admin, audited: auditedCommand("demo make", {}) };
  const organizationId = await createOrganization(ctx, "Demo Partner");
  const name = organizationId.slice(-6);
  const [user, referrer] = [`demo-user-${name}`, `demo-referrer-${name}`];
  const brandId = await createBrand(ctx, organizationId, "Demo Brand");
  const productId = await createProduct(ctx, {
    brandId,
    key: "demo-pass",
    name: "Demo Pass",
    type: "Subscription",
    retailPriceUsd: 29.9,
    priceUsd: 19.9,
    benefitMonths: 3,
    usageUnitLabel: null,
  });
  const codes: string[] = [];
  const validUntil = new Date(Date.now() + VALID_DAYS * 86_400_000);
  await issueBatch(
    ctx,
    { productId, count: BATCH_SIZE, validUntil, audience: "OpenToAll", windows: {}, codes: null },
    (vouchers) => void codes.push(...vouchers.map((voucher) => voucher.code)),
  );
  const openListingId = await listBatch(ctx, productId, validUntil, "OpenToAll");
  const referrersListingId = await listBatch(ctx, productId, validUntil, "ReferrerOnly");
  const contractId = await offerContract(ctx, { brandId, userId: referrer, endsAt: null });
  await changeContract(ctx, contractId, "Active");
  const linkCode = await makeLink(ctx, contractId, productId);
  const { key } = await createKey(ctx, {
    organizationId,
    label: "demo",
    scopes: [...SCOPES],
    allowIps: [],
    expiresAt: null,
  });
  return { key, codes, openListingId, referrersListingId, linkCode, user, referrer };
}

/** Lists a batch that users can claim and buy. */
async function listBatch(ctx: AuditContext, productId: string, validUntil: Date, audience: Audience): Promise<string> {
  const always = { opensAt: null, closesAt: null };
  const windows = { claim: always, buy: always };
  const terms = { productId, count: BATCH_SIZE, validUntil, audience, windows, codes: null };
  const batch = await issueBatch(ctx, terms, () => undefined);
  return (await createListing(ctx, batch.id)).id;
}

/**
 * The commands of the demo, to paste into a shell.
 * @param claims the claims of tokens for the embedded servers. Null leaves out the marketplace, because another issuer signs its tokens.
 */
export async function showDemo(demo: Demo, baseUrl: string, claims: TokenClaims | null): Promise<string> {
  return showPartnerDemo(demo, baseUrl) + (claims === null ? "" : `\n${await showMarketplaceDemo(demo, claims)}`);
}

function showPartnerDemo({ key, codes }: Demo, baseUrl: string): string {
  const [code, other, third] = codes;
  return `
A demo organization was created. Its API key is shown only once:

  ${key}

Some of its vouchers: ${code}  ${other}  ${third}

Try it in another terminal:

  export KEY=${key} CODE=${code} API=${baseUrl}

  # What is it worth?
  curl -s $API/partner/vouchers/$CODE -H "X-Api-Key: $KEY"

  # Reserve it, then redeem it. Run the second line twice: the order redeems the voucher only once. For another CODE it is another order.
  curl -s $API/partner/vouchers/reserve -H "X-Api-Key: $KEY" -H "Content-Type: application/json" -d "{\\"code\\":\\"$CODE\\"}"
  curl -s $API/partner/vouchers/redeem -H "X-Api-Key: $KEY" -H "Content-Type: application/json" -d "{\\"code\\":\\"$CODE\\",\\"externalRef\\":\\"order-$CODE\\"}"

  # Read its sealed history, and compute the hash of its second event from the payload.
  curl -s $API/partner/vouchers/$CODE/events -H "X-Api-Key: $KEY"
  curl -s $API/partner/vouchers/$CODE/events -H "X-Api-Key: $KEY" | node -pe 'JSON.parse(fs.readFileSync(0)).events[1].payload' | tr -d '\\n' | sha256sum
`;
}

async function showMarketplaceDemo(
  { openListingId, referrersListingId, linkCode, ...users }: Demo,
  claims: TokenClaims,
): Promise<string> {
  const [user, referrer] = await Promise.all(
    [users.user, users.referrer].map((name) => mintUserToken(LOCAL_DIRECTORY, name, TOKEN_MS, claims)),
  );
  return `Users take vouchers from open windows. These tokens are valid for a day; npm run voucherctl -- user token --user … creates more:

  export USER_TOKEN=${user}
  export REFERRER_TOKEN=${referrer}

  # Which batches are listed, and can this user buy them?
  curl -s $API/marketplace/listings -H "Authorization: Bearer $USER_TOKEN"

  # Buy from the open listing. The referrer-only listing refuses the user with 403 and sells to the referrer.
  curl -s $API/marketplace/listings/${openListingId}/buy -H "Authorization: Bearer $USER_TOKEN" -d '{"paymentRef":"payment-1"}'
  curl -s $API/marketplace/listings/${referrersListingId}/buy -H "Authorization: Bearer $USER_TOKEN" -d '{"paymentRef":"payment-2"}'
  curl -s $API/marketplace/listings/${referrersListingId}/buy -H "Authorization: Bearer $REFERRER_TOKEN" -d '{"paymentRef":"payment-3"}'

  # Claim through the referrer's link.
  curl -s -X POST $API/r/${linkCode}/claim -H "Authorization: Bearer $USER_TOKEN"
`;
}
