import type { z } from "zod";
import { EXAMPLE, examples } from "../../platform/api/example.ts";
import {
  brand,
  count,
  flag,
  named,
  productKey,
  productName,
  sandbox,
  text,
  timestamp,
  usd,
} from "../../platform/api/fields.ts";
import { AVAILABLE_MAX } from "./listings.ts";

/** What a referrer's link offers. */
export const linkResponse = named("Link", {
  code: text("The link's code.", EXAMPLE.linkCode),
  brand,
  productName,
  productKey,
  priceUsd: usd("The product's price. A claim costs nothing.", EXAMPLE.priceUsd),
  retailPriceUsd: usd("The product's list price.", EXAMPLE.retailPriceUsd),
  available: count(
    0,
    `Vouchers that can be claimed through the link, counted up to ${AVAILABLE_MAX}, at most 20 seconds ago. 0 ` +
      "only if none can be claimed now.",
    214,
  ),
  validUntil: timestamp(
    "The first moment at which the voucher that the next claim gives is no longer valid. Null if none can be " +
      "claimed now.",
    EXAMPLE.validUntil,
  ).nullable(),
  canClaim: flag("Whether a claim by a user who has not claimed this product would succeed now."),
  url: text("The link's address, which also has a page for people.", `${EXAMPLE.baseUrl}/r/${EXAMPLE.linkCode}`),
  sandbox,
});

export type LinkResponse = z.output<typeof linkResponse>;

const { brand: brandName, productName: name, productKey: key, priceUsd, retailPriceUsd, validUntil } = EXAMPLE;
const LINK: LinkResponse = {
  code: EXAMPLE.linkCode,
  brand: brandName,
  productName: name,
  productKey: key,
  priceUsd,
  retailPriceUsd,
  available: 214,
  validUntil,
  canClaim: true,
  url: `${EXAMPLE.baseUrl}/r/${EXAMPLE.linkCode}`,
};

examples.add(linkResponse, {
  open: { summary: "A voucher can be claimed", value: LINK },
  closed: {
    summary: "No voucher is left, or the window is closed",
    value: { ...LINK, available: 0, validUntil: null, canClaim: false },
  },
});
