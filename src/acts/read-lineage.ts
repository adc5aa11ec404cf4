import type pg from "pg";
import { findLineage, type Lineage } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";

/** The collections whose entities have a page, and the field of a lineage with the entity's own id. */
const ID_FIELD = {
  organizations: "organizationId",
  brands: "brandId",
  products: "productId",
  batches: "batchId",
  vouchers: "voucherId",
  contracts: "contractId",
  keys: "keyId",
  webhooks: "webhookId",
} as const;

/** Whether the entities of a collection belong to an organization, and so have a lineage. */
export function hasLineage(collection: string): boolean {
  return Object.hasOwn(ID_FIELD, collection);
}

/** Finds an entity of a collection, and what it belongs to. @throws AppError `not_found`. */
export async function readLineage({ pool }: { pool: pg.Pool }, collection: string, id: string): Promise<Lineage> {
  const lineage = await findLineage(pool, id);
  if (lineage?.[ID_FIELD[collection as keyof typeof ID_FIELD]] !== id) {
    throw new AppError("not_found", "There is nothing with this id.");
  }
  return lineage;
}
