import { LISTS } from "../acts/db/lists.ts";
import type { Noun } from "./command.ts";
import { formatUsd, formatUtc } from "./format.ts";
import { listVerb } from "./list.ts";

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  verbs: {
    list: listVerb(LISTS.organizations, {
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
    list: listVerb(LISTS.brands, {
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

export const member: Noun = {
  name: "member",
  description: "members of an organization",
  verbs: {},
};

export const product: Noun = {
  name: "product",
  description: "products of a brand; each batch of vouchers is for one product",
  verbs: {
    list: listVerb(LISTS.products, {
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
