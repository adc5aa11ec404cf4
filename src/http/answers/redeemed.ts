import { z } from "zod";
import { EXAMPLE, EXAMPLE_VERIFY_URL } from "./example.ts";
import { benefitMonths, productKey, productName, serial, timestamp, usd, verifyUrl, voucherId } from "./values.ts";

/** The answer to redeem (contract, "Redeem result"). */
export const redeemed = z
  .object({
    redeemed: z.literal(true).meta({ description: "The voucher is burned under your `externalRef`." }),
    alreadyConfirmed: z.boolean().meta({
      description:
        "False: this call burned it. True: an earlier call with this `externalRef` had, and everything else here is the answer that it got; nothing was burned again. Both are successes.",
    }),
    voucherInstanceId: voucherId,
    redeemCode: z.string().meta({
      description: "The code to hand to the customer, who gets the benefit with it.",
      examples: [EXAMPLE.redeemCode],
    }),
    serial,
    productName,
    productKey,
    discountPriceUsd: usd("What the voucher is worth.", EXAMPLE.priceUsd),
    benefitMonths,
    redeemedAt: timestamp("When it was burned.", EXAMPLE.redeemedAt),
    verifyUrl,
  })
  .meta({ id: "Redemption" });

/** The first answer under the example's reference. */
export const REDEEMED_EXAMPLE: z.infer<typeof redeemed> = {
  redeemed: true,
  alreadyConfirmed: false,
  voucherInstanceId: EXAMPLE.voucherId,
  redeemCode: EXAMPLE.redeemCode,
  serial: EXAMPLE.serial,
  productName: EXAMPLE.productName,
  productKey: EXAMPLE.productKey,
  discountPriceUsd: EXAMPLE.priceUsd,
  benefitMonths: 3,
  redeemedAt: EXAMPLE.redeemedAt,
  verifyUrl: EXAMPLE_VERIFY_URL,
};
