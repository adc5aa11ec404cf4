import { z } from "zod";
import { EXAMPLE } from "../../../platform/api/example.ts";
import {
  benefitMonths,
  brand,
  pickFields,
  productKey,
  productName,
  serial,
  text,
  timestamp,
  usageUnitLabel,
  usd,
  voucherId,
} from "../../../platform/api/fields.ts";
import { VOUCHER_TYPES } from "../voucher.ts";

/** A voucher in the responses to look-ups, claims and purchases. */
export const voucherView = z
  .object({
    id: voucherId,
    code: text("The code as it was issued. A secret: it can be redeemed.", EXAMPLE.code),
    serial,
    brand,
    productName,
    productKey,
    type: z.enum(VOUCHER_TYPES).meta({ description: "The kind of product." }),
    retailPriceUsd: usd("The product's list price when the voucher was issued.", EXAMPLE.retailPriceUsd),
    priceUsd: usd("The voucher's value.", EXAMPLE.priceUsd),
    benefitMonths,
    usageUnitLabel,
    validUntil: timestamp("The first moment at which the voucher is no longer valid.", EXAMPLE.validUntil),
    status: z.enum(["Active", "Redeemed", "Voided", "Expired", "Suspended"]).meta({
      description:
        "The status at the time of the call, by the service's clock. Active: can be reserved and redeemed. " +
        "Suspended: on hold until the issuer resumes it; its time runs on. Redeemed and Voided are final and do not " +
        "change after `validUntil`. Later releases may add values: treat one that you do not know as not redeemable.",
      "x-open": true,
    }),
    redeemedAt: timestamp("When the voucher was redeemed; null until then.", EXAMPLE.redeemedAt).nullable(),
  })
  .meta({ id: "Voucher", description: "A voucher, its value and its status." });

export type VoucherView = z.output<typeof voucherView>;

/** The example of an active voucher. */
export const VOUCHER_EXAMPLE: VoucherView = pickFields(voucherView, {
  ...EXAMPLE,
  id: EXAMPLE.voucherId,
  status: "Active",
  redeemedAt: null,
});
