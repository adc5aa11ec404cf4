import type { AdminContext } from "../admin-context.ts";
import { insertBrand, insertOrganization, insertProduct } from "../db/catalogue.ts";
import { insertListing } from "../db/listings.ts";
import { newId } from "../domain/ids.ts";
import type { Audience } from "../domain/voucher.ts";
import { issueBatch } from "../services/issue-batch.ts";
import { changeContract, makeLink, offerContract } from "../services/manage-contracts.ts";
import { createKey } from "../services/manage-keys.ts";
import { type ActContext, actBy, recordAct } from "../services/record-act.ts";
import { LOCAL_DIRECTORY } from "./directory.ts";
import { mintUserToken, type TokenClaims } from "./user-keys.ts";

/** Something to try: a key, the codes of a small batch, and supply in open windows. */
export interface Demo {
  key: string;
  codes: string[];
  openListingId: string;
  referrersListingId: string;
  linkCode: string;
}

/** Vouchers of the demo. */
const COUNT = 20;
const VALID_DAYS = 365;
/** Users of the demo, and how long their printed tokens work. Milliseconds. */
const USER = "demo-user";
const REFERRER = "demo-referrer";
const TOKEN_MS = 86_400_000;

/** Makes a demo organization with a brand, a product, a batch and a key, if the database holds no key yet. */
export async function makeDemo(admin: AdminContext): Promise<Demo | null> {
  const { rowCount } = await admin.pool.query("SELECT 1 FROM api_keys LIMIT 1");
  if (rowCount !== 0) return null;
  const ctx = { ...admin, act: actBy("demo make", {}) };
  const organizationId = newId("org");
  const brandId = newId("brd");
  const productId = newId("prd");
  await recordAct(ctx, { type: "Organization", id: organizationId }, (tx) =>
    insertOrganization(tx, organizationId, "Demo Partner"),
  );
  await recordAct(ctx, { type: "Brand", id: brandId }, (tx) => insertBrand(tx, brandId, organizationId, "Demo Brand"));
  await recordAct(ctx, { type: "Product", id: productId }, (tx) =>
    insertProduct(tx, {
      id: productId,
      brandId,
      key: "demo-pass",
      name: "Demo Pass",
      type: "Subscription",
      retailPriceUsd: 29.9,
      priceUsd: 19.9,
      benefitMonths: 3,
      usageUnitLabel: null,
    }),
  );
  const codes: string[] = [];
  const validUntil = new Date(Date.now() + VALID_DAYS * 86_400_000);
  await issueBatch(
    ctx,
    { productId, count: COUNT, validUntil, audience: "OpenToAll", windows: {}, codes: null },
    (vouchers) => void codes.push(...vouchers.map((voucher) => voucher.code)),
  );
  const openListingId = await listBatch(ctx, productId, validUntil, "OpenToAll");
  const referrersListingId = await listBatch(ctx, productId, validUntil, "ReferrerOnly");
  const contractId = await offerContract(ctx, { brandId, userId: REFERRER, endsAt: null });
  await changeContract(ctx, contractId, "Active");
  const linkCode = await makeLink(ctx, contractId, productId);
  const { key } = await createKey(ctx, {
    organizationId,
    label: "demo",
    scopes: ["voucher.read", "voucher.redeem"],
    allowIps: [],
    expiresAt: null,
  });
  return { key, codes, openListingId, referrersListingId, linkCode };
}

/** Offers a batch that users may claim and buy. */
async function listBatch(ctx: ActContext, productId: string, validUntil: Date, audience: Audience): Promise<string> {
  const always = { opensAt: null, closesAt: null };
  const windows = { claim: always, buy: always };
  const { id } = await issueBatch(
    ctx,
    { productId, count: COUNT, validUntil, audience, windows, codes: null },
    () => {},
  );
  const listingId = newId("lst");
  await recordAct(ctx, { type: "Listing", id: listingId }, (tx) => insertListing(tx, listingId, id));
  return listingId;
}

/** What to paste into a shell. */
export function showDemo({ key, codes }: Demo, baseUrl: string): string {
  const [code, other, third] = codes;
  return `
A demo organization was made. Its API key is shown this once:

  ${key}

Some of its vouchers: ${code}  ${other}  ${third}

Try it in another terminal:

  export KEY=${key} CODE=${code} API=${baseUrl}

  # What is it worth?
  curl -s $API/partner/vouchers/$CODE -H "X-Api-Key: $KEY"

  # Hold it for 15 minutes, then burn it. Run the second line twice: the order burns once.
  curl -s $API/partner/vouchers/reserve -H "X-Api-Key: $KEY" -H "Content-Type: application/json" -d "{\\"code\\":\\"$CODE\\"}"
  curl -s $API/partner/vouchers/redeem -H "X-Api-Key: $KEY" -H "Content-Type: application/json" -d "{\\"code\\":\\"$CODE\\",\\"externalRef\\":\\"order-1\\"}"

  # Its sealed history, and its hashes once more from the payloads.
  curl -s $API/partner/vouchers/$CODE/events -H "X-Api-Key: $KEY"
  curl -s $API/partner/vouchers/$CODE/events -H "X-Api-Key: $KEY" | node -pe 'JSON.parse(fs.readFileSync(0)).events[1].payload' | tr -d '\\n' | sha256sum
`;
}

/** What users may do, with tokens of the embedded default. */
export async function showMarketplaceDemo(
  { openListingId, referrersListingId, linkCode }: Demo,
  claims: TokenClaims,
): Promise<string> {
  const [user, referrer] = await Promise.all(
    [USER, REFERRER].map((name) => mintUserToken(LOCAL_DIRECTORY, name, TOKEN_MS, claims)),
  );
  return `Users take vouchers from open windows. Tokens for a day; npm run voucherctl -- user token --user … makes more:

  export USER_TOKEN=${user}
  export REFERRER_TOKEN=${referrer}

  # What is on the market, and may this user buy it?
  curl -s $API/marketplace/listings -H "Authorization: Bearer $USER_TOKEN"

  # Buy from the open listing. The referrer-only one answers 403 to the user and gives to the referrer.
  curl -s $API/marketplace/listings/${openListingId}/buy -H "Authorization: Bearer $USER_TOKEN" -d '{"paymentRef":"payment-1"}'
  curl -s $API/marketplace/listings/${referrersListingId}/buy -H "Authorization: Bearer $USER_TOKEN" -d '{"paymentRef":"payment-2"}'
  curl -s $API/marketplace/listings/${referrersListingId}/buy -H "Authorization: Bearer $REFERRER_TOKEN" -d '{"paymentRef":"payment-3"}'

  # Claim by the referrer's link.
  curl -s -X POST $API/r/${linkCode}/claim -H "Authorization: Bearer $USER_TOKEN"
`;
}
