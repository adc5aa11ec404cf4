import { z } from "zod";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { ISSUER_KEY } from "../../issuer/act-endpoint.ts";
import type { IssuerDeps } from "../../issuer/issuer.ts";
import { createdAt, ID_CURSOR, listOwn, onlyOf, pageOf, pageQuery } from "../../issuer/lists.ts";
import { BATCH_FIELDS } from "../../issuer/routes/batches.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { productId, productName, text } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { LISTINGS } from "../db/listings.ts";

const listing = z.object({
  id: text("The listing's id.", EXAMPLE.listingId),
  batchId: BATCH_FIELDS.id,
  productId,
  productName,
  audience: BATCH_FIELDS.audience,
  validUntil: BATCH_FIELDS.validUntil,
  createdAt,
});

export const issuedListings = endpoint({
  path: "/issuer/listings",
  operationId: "listListings",
  summary: "List your organization's listings",
  description: "All listings, or those of one product or batch.",
  access: ISSUER_KEY,
  query: z.object({ product: onlyOf("product"), batch: onlyOf("batch"), ...pageQuery(ID_CURSOR) }),
  response: pageOf("IssuedListingsPage", listing, "ids, new ones last"),
  responseDescription: "A page of listings.",
  handler: (deps: IssuerDeps & Confirming, { caller, query }) => listOwn(deps, caller, [LISTINGS, listing], query),
});
