import type { AdminContext } from "../context.ts";
import { insertBrand, insertOrganization, insertProduct } from "../db/catalogue.ts";
import { newId } from "../domain/ids.ts";
import { issueBatch } from "../services/issue-batch.ts";
import { createKey } from "../services/manage-keys.ts";

/** Something to try: a key and the codes of a small batch. */
export interface Demo {
  key: string;
  codes: string[];
}

/** Vouchers of the demo. */
const COUNT = 20;
const VALID_DAYS = 365;

/** Makes a demo organization with a brand, a product, a batch and a key, if the database holds no key yet. */
export async function makeDemo(ctx: AdminContext): Promise<Demo | null> {
  const { rowCount } = await ctx.pool.query("SELECT 1 FROM api_keys LIMIT 1");
  if (rowCount !== 0) return null;
  const organizationId = newId("org");
  const brandId = newId("brd");
  const productId = newId("prd");
  await insertOrganization(ctx.pool, organizationId, "Demo Partner");
  await insertBrand(ctx.pool, brandId, organizationId, "Demo Brand");
  await insertProduct(ctx.pool, {
    id: productId,
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
  await issueBatch(ctx, { productId, count: COUNT, validUntil, audience: "OpenToAll", codes: null }, (vouchers) => {
    codes.push(...vouchers.map((voucher) => voucher.code));
  });
  const { key } = await createKey(ctx, {
    organizationId,
    label: "demo",
    scopes: ["voucher.read", "voucher.redeem"],
    allowIps: [],
    expiresAt: null,
  });
  return { key, codes };
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
