import type { Lineage } from "../core/catalog/db/catalog.ts";

/** A kind of entity that acts change or create, and its names in each interface. */
export interface EntityNames {
  /** The segment in the console's paths. */
  collection: string;
  /** The option of `voucherctl` for this entity in commands that add something to it. */
  option: string;
  /** The console's page that lists the entities, as segments after `/ops`. By default, the collection's page. */
  listedOn?: readonly string[];
  /** The field of `Lineage` with the entity's id, if the entity has a page. */
  idField?: keyof Lineage;
}

export const ENTITIES = {
  organization: { collection: "organizations", option: "org", idField: "organizationId" },
  brand: { collection: "brands", option: "brand", idField: "brandId" },
  product: { collection: "products", option: "product", idField: "productId" },
  batch: { collection: "batches", option: "batch", idField: "batchId" },
  voucher: { collection: "vouchers", option: "voucher", idField: "voucherId" },
  contract: { collection: "contracts", option: "contract", idField: "contractId" },
  key: { collection: "keys", option: "key", idField: "keyId" },
  webhook: { collection: "webhooks", option: "webhook", idField: "webhookId" },
  listing: { collection: "listings", option: "listing" },
  link: { collection: "links", option: "link" },
  member: { collection: "members", option: "member" },
  operator: { collection: "operators", option: "operator" },
  queue: { collection: "queues", option: "queue" },
  process: { collection: "processes", option: "process", listedOn: [] },
} as const satisfies Record<string, EntityNames>;

export type EntityKind = keyof typeof ENTITIES;
