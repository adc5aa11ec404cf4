import type { Noun } from "./command.ts";
import { formatUsd, formatUtc } from "./format.ts";
import { listVerb } from "./list.ts";

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  verbs: {
    list: listVerb("organizations", {
      cursor: /^org_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, sandbox }) => ({
        cells: [id, formatUtc(createdAt), `${name}${sandbox ? " (sandbox)" : ""}`],
      }),
      examples: ['--name "corner"', "--limit 1000 --json"],
    }),
  },
};

export const brand: Noun = {
  name: "brand",
  description: "brands of an organization",
  verbs: {
    list: listVerb("brands", {
      cursor: /^brd_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, organizationId }) => ({
        cells: [id, formatUtc(createdAt), name],
        note: organizationId,
      }),
      examples: ["--org org_…"],
    }),
  },
};

export const product: Noun = {
  name: "product",
  description: "products of a brand; each batch of vouchers is for one product",
  verbs: {
    list: listVerb("products", {
      cursor: /^prd_/,
      headings: ["ID", "PRICE", "TYPE", "NAME"],
      toRow: ({ id, priceUsd, type, key, name, brandId }) => ({
        cells: [id, formatUsd(priceUsd), type, name],
        note: `${key}, ${brandId}`,
      }),
      examples: ["--brand brd_…", '--org org_… --name "pass"'],
    }),
  },
};

export const listing: Noun = {
  name: "listing",
  description: "batches listed on the marketplace",
  verbs: {
    list: listVerb("listings", {
      cursor: /^lst_/,
      headings: ["ID", "VALID UNTIL (UTC)", "PRODUCT"],
      toRow: ({ id, batchId, validUntil, audience, productName }) => ({
        cells: [id, formatUtc(validUntil), productName],
        note: `${batchId}, ${audience}`,
      }),
      examples: ["--org org_…"],
    }),
  },
};
