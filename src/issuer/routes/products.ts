import { z } from "zod";
import { LISTS } from "../../acts/db/lists.ts";
import type { Confirming } from "../../core/commit/confirm-reads.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import {
  benefitMonths,
  productId,
  productKey,
  productName,
  text,
  usageUnitLabel,
  usd,
} from "../../platform/api/fields.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { ISSUER_KEY } from "../act-endpoint.ts";
import type { IssuerDeps } from "../issuer.ts";
import { createdAt, ID_CURSOR, listOwn, onlyOf, pageOf, pageQuery } from "../lists.ts";

const product = z.object({
  id: productId,
  brandId: text("The brand's id.", EXAMPLE.brandId),
  key: productKey,
  name: productName,
  type: text("What the vouchers are for.", EXAMPLE.type),
  retailPriceUsd: usd("List price.", EXAMPLE.retailPriceUsd),
  priceUsd: usd("Price of a voucher.", EXAMPLE.priceUsd),
  benefitMonths,
  usageUnitLabel,
  createdAt,
});

export const products = endpoint({
  path: "/issuer/products",
  operationId: "listProducts",
  summary: "List your organization's products",
  description: "All products, or those of one brand.",
  access: ISSUER_KEY,
  query: z.object({ brand: onlyOf("brand"), ...pageQuery(ID_CURSOR) }),
  response: pageOf("ProductsPage", product, "ids, new ones last"),
  responseDescription: "A page of products.",
  handler: (deps: IssuerDeps & Confirming, { caller, query }) =>
    listOwn(deps, caller, [LISTS.products, product], query),
});
