import { z } from "zod";
import { VOUCHER_TYPES } from "../../domain/voucher.ts";
import { EXAMPLE } from "./example.ts";
import {
  benefitMonths,
  brand,
  productKey,
  productName,
  serial,
  timestamp,
  usageUnitLabel,
  usd,
  voucherId,
} from "./values.ts";

/** A voucher as look-ups and takings answer it (contract, "Voucher"). */
export const voucher = z
  .object({
    id: voucherId,
    code: z.string().meta({
      description: "The code as it was issued. Whoever has it can spend the voucher.",
      examples: [EXAMPLE.code],
    }),
    serial,
    brand,
    productName,
    productKey,
    type: z.enum(VOUCHER_TYPES).meta({ description: "What kind of product it is for." }),
    retailPriceUsd: usd("The product's list price when the voucher was issued.", EXAMPLE.retailPriceUsd),
    priceUsd: usd("What the voucher is worth.", EXAMPLE.priceUsd),
    benefitMonths,
    usageUnitLabel,
    validUntil: timestamp("The first moment at which it cannot be used any more.", EXAMPLE.validUntil),
    status: z.enum(["Active", "Redeemed", "Voided", "Expired"]).meta({
      description:
        "Judged at the moment of the call by the service's clock. Active: can be reserved and redeemed. Redeemed and Voided are final and stay what they are after `validUntil`.",
    }),
    redeemedAt: timestamp("When it was redeemed; null until then.", EXAMPLE.redeemedAt).nullable(),
  })
  .meta({ id: "Voucher", description: "A voucher and what it is worth." });

/** The example's voucher, not yet redeemed. */
export const VOUCHER_EXAMPLE: z.infer<typeof voucher> = {
  id: EXAMPLE.voucherId,
  code: EXAMPLE.code,
  serial: EXAMPLE.serial,
  brand: EXAMPLE.brand,
  productName: EXAMPLE.productName,
  productKey: EXAMPLE.productKey,
  type: "Subscription",
  retailPriceUsd: EXAMPLE.retailPriceUsd,
  priceUsd: EXAMPLE.priceUsd,
  benefitMonths: 3,
  usageUnitLabel: null,
  validUntil: EXAMPLE.validUntil,
  status: "Active",
  redeemedAt: null,
};
