import { Readable } from "node:stream";
import type pg from "pg";
import { type IssuedVoucher, type IssueInput, writeBatch } from "../../src/acts/issue-batch.ts";
import { createKey, type ShownKey } from "../../src/acts/key/create.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { insertBrand, insertOrganization, insertProduct } from "../../src/core/catalog/db/catalog.ts";
import type { Scope } from "../../src/core/keys/api-keys.ts";
import { type KeyCaps, NO_CAPS } from "../../src/core/keys/db/api-keys.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import type { Audience } from "../../src/core/voucher/voucher.ts";
import { pooledRandomBytes } from "../../src/platform/random.ts";

/** Makes the context of the services that create test data. */
export function provisioning(db: pg.Pool) {
  const config = { baseUrl: "https://vouchers.example.com" };
  return { pool: db, randomBytes: pooledRandomBytes, audited: auditedCommand("provision test", {}), config };
}

/** An organization with a brand and a product. */
export interface TestPartner {
  organizationId: string;
  brandId: string;
  productId: string;
}

let partners = 0;

/** Creates an organization, by default live, with a brand and a product ($50, discounted $40.25, 6 months). */
export async function makePartner(db: pg.Pool, { sandbox = false } = {}): Promise<TestPartner> {
  partners += 1;
  const partner = { organizationId: newId("org"), brandId: newId("brd"), productId: newId("prd") };
  await insertOrganization(db, { id: partner.organizationId, name: `Organization ${partners}`, sandbox });
  await insertBrand(db, { id: partner.brandId, organizationId: partner.organizationId, name: `Brand ${partners}` });
  await insertProduct(db, {
    id: partner.productId,
    brandId: partner.brandId,
    key: "pass",
    name: "Pass",
    type: "Subscription",
    retailPriceUsd: 50,
    priceUsd: 40.25,
    benefitMonths: 6,
    usageUnitLabel: "visit",
  });
  return partner;
}

/** Creates a key, by default with both scopes and for any address. */
export async function makeKey(
  db: pg.Pool,
  organizationId: string | null,
  options: { scopes?: Scope[]; allowIps?: string[]; expiresAt?: Date; caps?: KeyCaps } = {},
): Promise<ShownKey> {
  const made = await createKey.run(provisioning(db), organizationId ?? "", {
    label: null,
    scopes: options.scopes ?? ["voucher.read", "voucher.redeem"],
    allowIps: options.allowIps ?? [],
    expiresAt: null,
    ...(options.caps ?? NO_CAPS),
  });
  // The service refuses an end in the past, but some tests need one.
  const { expiresAt } = options;
  if (expiresAt) await db.query("UPDATE api_keys SET expires_at = $2 WHERE id = $1", [made.id, expiresAt]);
  return made;
}

interface IssueOptions {
  validUntil?: Date;
  audience?: Audience;
  windows?: IssueInput["windows"];
  codes?: string[];
}

/** Issues a batch of a product, by default valid for a day, for everyone and without windows. */
export async function issueTestBatch(
  db: pg.Pool,
  { productId }: Pick<TestPartner, "productId">,
  count: number,
  { validUntil = new Date(Date.now() + 86_400_000), audience = "OpenToAll", windows = {}, codes }: IssueOptions = {},
): Promise<{ batchId: string; vouchers: IssuedVoucher[] }> {
  const vouchers: IssuedVoucher[] = [];
  const imported = codes === undefined ? null : () => Readable.from(codes);
  const input = { productId, count, validUntil, audience, windows, codes: imported };
  const { id } = await writeBatch(provisioning(db), input, (chunk) => void vouchers.push(...chunk));
  return { batchId: id, vouchers };
}

/** Issues vouchers of a product. */
export async function issueVouchers(
  db: pg.Pool,
  partner: TestPartner,
  count: number,
  options: IssueOptions = {},
): Promise<IssuedVoucher[]> {
  return (await issueTestBatch(db, partner, count, options)).vouchers;
}

/** Issues one voucher. */
export async function issueVoucher(
  db: pg.Pool,
  partner: TestPartner,
  options: { validUntil?: Date } = {},
): Promise<IssuedVoucher> {
  const [voucher] = await issueVouchers(db, partner, 1, options);
  if (voucher === undefined) throw new Error("no voucher was issued");
  return voucher;
}
