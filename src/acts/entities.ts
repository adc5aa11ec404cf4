import type { Lineage } from "../core/catalog/db/catalog.ts";

/** What acts are on and create, and how each face names it. */
export interface EntityNames {
  /** In the paths of the console. */
  collection: string;
  /** In `voucherctl`: the option that names it where something is added to it. */
  option: string;
  /** The page of the console that lists it: the segments of its path after `/ops`, if it is not its collection. */
  listedOn?: readonly string[];
  /** The field of a lineage with its id, if it has a page. */
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
