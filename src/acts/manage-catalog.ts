import {
  insertBrand,
  insertListing,
  insertOrganization,
  insertProduct,
  type NewProduct,
  selectWindows,
} from "../core/catalog/db/catalog.ts";
import { newId } from "../core/voucher/ids.ts";
import { type AuditContext, refuseIfTaken, withAuditEntry } from "./with-audit-entry.ts";

/** Creates a live or sandbox organization and returns its id. Which of the two it is never changes. */
export async function createOrganization(ctx: AuditContext, name: string, sandbox = false): Promise<string> {
  const id = newId("org");
  await withAuditEntry(ctx, { type: "Organization", id }, (tx) => insertOrganization(tx, { id, name, sandbox }));
  return id;
}

/** Creates a brand of an organization and returns its id. */
export async function createBrand(ctx: AuditContext, organizationId: string, name: string): Promise<string> {
  const id = newId("brd");
  await withAuditEntry(ctx, { type: "Brand", id }, (tx) => insertBrand(tx, { id, organizationId, name }));
  return id;
}

/**
 * Creates a product and returns its id.
 * @throws AppError `invalid_request` when the brand already has a product with this key.
 */
export async function createProduct(ctx: AuditContext, product: Omit<NewProduct, "id">): Promise<string> {
  const id = newId("prd");
  const taken = `The brand already has a product with the key ${product.key}.`;
  const created = withAuditEntry(ctx, { type: "Product", id }, (tx) => insertProduct(tx, { ...product, id }));
  await refuseIfTaken("products_brand_id_key_key", taken, created);
  return id;
}

/**
 * Creates a listing of a batch. `canBeBought` is whether the batch has a buy window.
 * @throws AppError `invalid_request` when the batch is already listed.
 */
export async function createListing(ctx: AuditContext, batchId: string): Promise<{ id: string; canBeBought: boolean }> {
  const id = newId("lst");
  const created = withAuditEntry(ctx, { type: "Listing", id }, async (tx) => {
    await insertListing(tx, { id, batchId });
    return selectWindows(tx, batchId);
  });
  const { buy } = await refuseIfTaken("listings_batch_id_key", `Batch ${batchId} is already listed.`, created);
  return { id, canBeBought: buy !== null };
}
