import { createBrand } from "../acts/brand/create.ts";
import { writeBatch } from "../acts/issue-batch.ts";
import { createKey } from "../acts/key/create.ts";
import { revokeApiKey } from "../acts/key/revoke.ts";
import type { AdminContext } from "../acts/open-acts.ts";
import { createOrganization } from "../acts/org/create.ts";
import { createProduct } from "../acts/product/create.ts";
import { type AuditContext, auditedCommand } from "../acts/with-audit-entry.ts";
import { findNamesake, findOrganization } from "../core/catalog/db/catalog.ts";

/** The vouchers and keys of a load. */
interface Supply {
  organizationId: string;
  keys: string[];
  codes: string[];
  /** Revokes the keys. The remaining vouchers expire by themselves. */
  end(): Promise<void>;
}

/** The name of the sandbox that is made when none is given, and the name of its brand and product. */
const NAME = "Scale check";
/** Enough keys, so that no key reaches its own limit before the service reaches its limit. */
const KEYS = 16;
/** Longest validity of the keys and vouchers. Milliseconds. */
const VALID_MS = 3_600_000;

/**
 * Issues vouchers and keys in a sandbox: in the given one, or in one that it creates on its first run.
 * @throws Error with a sentence for a live organization, whose partner would lose vouchers.
 */
export async function openSupply(admin: AdminContext, given: string | null, count: number): Promise<Supply> {
  const ctx = { ...admin, audited: auditedCommand("scale-check", {}) };
  const organizationId =
    given ?? (await findSandbox(ctx)) ?? (await createOrganization.run(ctx, "", { name: NAME, sandbox: true })).id;
  const organization = await findOrganization(ctx.pool, organizationId);
  if (organization === null) throw new Error(`There is no organization ${organizationId}.`);
  if (!organization.sandbox) {
    throw new Error(`${organizationId} is a live organization. This redeems vouchers, so it works on a sandbox only.`);
  }
  const productId = await findProduct(ctx, organizationId);
  const terms = { label: "scale-check", scopes: ["voucher.redeem" as const], allowIps: [] };
  const expiresAt = new Date(Date.now() + VALID_MS);
  const keys = await Promise.all(
    Array.from({ length: KEYS }, () => createKey.run(ctx, organizationId, { ...terms, expiresAt })),
  );
  const codes: string[] = [];
  const input = { productId, count, validUntil: expiresAt, audience: "OpenToAll" as const, windows: {}, codes: null };
  await writeBatch(ctx, input, (vouchers) => void codes.push(...vouchers.map(({ code }) => code)));
  return {
    organizationId,
    keys: keys.map(({ key }) => key),
    codes,
    end: async () => void (await Promise.all(keys.map(({ id }) => revokeApiKey.run(ctx, id, {})))),
  };
}

async function findSandbox({ pool }: AuditContext): Promise<string | null> {
  const id = await findNamesake(pool, { parentId: null, name: NAME });
  return id !== null && (await findOrganization(pool, id))?.sandbox ? id : null;
}

async function findProduct(ctx: AuditContext, organizationId: string): Promise<string> {
  const brandId =
    (await findNamesake(ctx.pool, { parentId: organizationId, name: NAME })) ??
    (await createBrand.run(ctx, organizationId, { name: NAME })).id;
  const product = {
    key: "scale-check",
    name: NAME,
    type: "Service" as const,
    retailPriceUsd: 1,
    priceUsd: 1,
    benefitMonths: 1,
    usageUnitLabel: null,
  };
  return (
    (await findNamesake(ctx.pool, { parentId: brandId, name: NAME })) ??
    (await createProduct.run(ctx, brandId, product)).id
  );
}
