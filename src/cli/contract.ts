import { createLink } from "../acts/link/create.ts";
import { readAddress } from "../platform/config.ts";
import { verbOf } from "./act-verb.ts";
import type { Noun } from "./command.ts";
import { formatUtc } from "./format.ts";
import { listVerb } from "./list.ts";

export const member: Noun = {
  name: "member",
  description: "members of an organization",
  verbs: {},
};

export const contract: Noun = {
  name: "contract",
  description: "referrer contracts between users and brands",
  verbs: {
    list: listVerb("contracts", {
      cursor: /^ctr_/,
      headings: ["ID", "STATUS", "ENDS (UTC)", "USER"],
      toRow: ({ id, status, offeredAt, endsAt, userId, brand, brandId }) => ({
        cells: [id, status, endsAt === null ? "-" : formatUtc(endsAt), userId],
        note: `offered ${formatUtc(offeredAt)} by ${brand}, ${brandId}`,
      }),
      examples: ["--brand brd_… --status Active", "--user bob"],
    }),
  },
};

export const link: Noun = {
  name: "link",
  description: "referral links to products",
  verbs: {
    list: listVerb("links", {
      cursor: /^[0-9a-z]+$/,
      headings: ["CODE", "CREATED (UTC)", "PRODUCT", "REFERRER"],
      toRow: ({ code, createdAt, productId, userId, contractId }) => ({
        cells: [code, formatUtc(createdAt), productId, userId],
        note: contractId,
      }),
      examples: ["--contract ctr_…", "--user bob"],
    }),
    ...verbOf(createLink, {
      around: async (ctx, _options, perform) => ({
        result: await perform({ config: readAddress(ctx.host.readEnvironment()) }),
      }),
    }),
  },
};
