import { verbOf } from "../cli/act-verb.ts";
import type { Noun } from "../cli/command.ts";
import { formatUtc } from "../cli/format.ts";
import { listVerb } from "../cli/list.ts";
import { option } from "../cli/options.ts";
import type { CommandPart } from "../cli/program.ts";
import { readAddress } from "../platform/config.ts";
import { createLink } from "./acts.ts";
import { CONTRACT_STATUSES } from "./audience.ts";
import { CONTRACTS, LINKS } from "./db/contracts.ts";
import { LISTINGS } from "./db/listings.ts";

const OF_USER = option("<sub>", "only of this user");

const listing: Noun = {
  name: "listing",
  description: "batches listed on the marketplace",
  verbs: {
    list: listVerb(LISTINGS, {
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

const contract: Noun = {
  name: "contract",
  description: "referrer contracts between users and brands",
  verbs: {
    list: listVerb(CONTRACTS, {
      cursor: /^ctr_/,
      headings: ["ID", "STATUS", "ENDS (UTC)", "USER"],
      toRow: ({ id, status, offeredAt, endsAt, userId, brand, brandId }) => ({
        cells: [id, status, endsAt === null ? "-" : formatUtc(endsAt), userId],
        note: `offered ${formatUtc(offeredAt)} by ${brand}, ${brandId}`,
      }),
      examples: ["--brand brd_… --status Active", "--user bob"],
      filters: { user: OF_USER, status: option("<status>", "only those with this status", CONTRACT_STATUSES) },
    }),
  },
};

const link: Noun = {
  name: "link",
  description: "referral links to products",
  verbs: {
    list: listVerb(LINKS, {
      cursor: /^[0-9a-z]+$/,
      headings: ["CODE", "CREATED (UTC)", "PRODUCT", "REFERRER"],
      toRow: ({ code, createdAt, productId, userId, contractId }) => ({
        cells: [code, formatUtc(createdAt), productId, userId],
        note: contractId,
      }),
      examples: ["--contract ctr_…", "--user bob"],
      filters: { user: OF_USER, contract: option("<id>", "only of this contract") },
    }),
    ...verbOf(createLink, {
      around: async (ctx, _options, perform) => ({
        result: await perform({ config: readAddress(ctx.host.readEnvironment()) }),
      }),
    }),
  },
};

export const commands: CommandPart = { voucher: [listing], member: [contract, link] };
