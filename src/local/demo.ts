import { createBrand } from "../acts/brand/create.ts";
import { writeBatch } from "../acts/issue-batch.ts";
import { createKey } from "../acts/key/create.ts";
import type { AdminContext } from "../acts/open-acts.ts";
import { createOrganization } from "../acts/org/create.ts";
import { createProduct } from "../acts/product/create.ts";
import { auditedCommand } from "../acts/with-audit-entry.ts";
import { SCOPES } from "../core/keys/api-keys.ts";
import { NO_CAPS } from "../core/keys/db/api-keys.ts";

/** The parts of a demo that a new user can try: a key, and the codes of a small batch. */
export interface Demo {
  organizationId: string;
  brandId: string;
  productId: string;
  /** When the vouchers end. */
  validUntil: Date;
  keyId: string;
  key: string;
  codes: string[];
}

const BATCH_SIZE = 20;
const VALID_DAYS = 365;

/** Creates an organization with a brand, product, batch and key. May run any number of times on the same database. */
export async function makeDemo(admin: AdminContext, sandbox = false): Promise<Demo> {
  const ctx = { ...admin, audited: auditedCommand("demo make", {}) };
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
  const validUntil = new Date(Date.now() + VALID_DAYS * 86_400_000);
  const codes: string[] = [];
  const input = { productId, count: BATCH_SIZE, validUntil, audience: "OpenToAll", windows: {}, codes: null } as const;
  await writeBatch(ctx, input, (vouchers) => void codes.push(...vouchers.map(({ code }) => code)));
  const terms = { label: "demo", scopes: [...SCOPES], allowIps: [], expiresAt: null, ...NO_CAPS };
  const { id: keyId, key } = await createKey.run(ctx, organizationId, terms);
  return { organizationId, brandId, productId, validUntil, keyId, key, codes };
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
