import { z } from "zod";
import { LISTS } from "../../acts/db/lists.ts";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { brand, brandColour, brandLogo, text } from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY } from "../act-endpoint.ts";
import type { IssuerDeps } from "../issuer.ts";
import { createdAt, ID_CURSOR, listOwn, pageOf, pageQuery } from "../lists.ts";

const brandItem = z.object({
  id: text("The brand's id.", EXAMPLE.brandId),
  name: brand,
  colour: brandColour,
  logo: brandLogo,
  createdAt,
});

export const brands = endpoint({
  path: "/issuer/brands",
  operationId: "listBrands",
  summary: "List your organization's brands",
  description: "The operator creates brands. Products belong to one.",
  access: ISSUER_KEY,
  query: z.object(pageQuery(ID_CURSOR)),
  response: pageOf("BrandsPage", brandItem, "ids, new ones last"),
  responseDescription: "A page of brands.",
  handler: (deps: IssuerDeps & Confirming, { caller, query }) =>
    listOwn(deps, caller, [LISTS.brands, brandItem], query),
});
