import { z } from "zod";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { linkAddress } from "../../core/voucher/codes.ts";
import { ISSUER_KEY } from "../../issuer/act-endpoint.ts";
import type { IssuerCall, IssuerDeps } from "../../issuer/issuer.ts";
import { createdAt, listOwn, onlyOf, onlyOfUser, pageOf, pageQuery } from "../../issuer/lists.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { productId, productName, text } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { linkFields } from "../acts.ts";
import { LINKS } from "../db/contracts.ts";

const link = z.object({
  ...linkFields,
  contractId: text("The contract's id.", EXAMPLE.contractId),
  productId,
  productName,
  userId: text("The referrer: the subject of the user's tokens.", "7f3c0a52"),
  createdAt,
});

const withUrls = ({ config }: IssuerCall, items: { code: string }[]) =>
  items.map((item) => ({ ...item, url: linkAddress(config, item.code) }));

export const issuedLinks = endpoint({
  path: "/issuer/links",
  operationId: "listLinks",
  summary: "List your organization's referral links",
  description: "All links, or those of one contract, one product or one user.",
  access: ISSUER_KEY,
  query: z.object({
    contract: onlyOf("contract"),
    product: onlyOf("product"),
    user: onlyOfUser,
    ...pageQuery(/^[0-9a-z]{1,32}$/),
  }),
  response: pageOf("LinksPage", link, "codes"),
  responseDescription: "A page of links.",
  handler: (deps: IssuerDeps & Confirming, { caller, query }) => listOwn(deps, caller, [LINKS, link, withUrls], query),
});
