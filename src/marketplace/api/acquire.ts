import { z } from "zod";
import { paymentReference } from "../../core/voucher/api/typed-fields.ts";
import { VOUCHER_EXAMPLE, voucherView } from "../../core/voucher/api/voucher.ts";
import { EXAMPLE, EXAMPLE_VERIFY_URL, examples } from "../../platform/api/example.ts";
import { flag, named, sandbox, text, verifyUrl } from "../../platform/api/fields.ts";

export const linkCode = text("The link's code.", EXAMPLE.linkCode);

export const buyRequest = named("BuyRequest", {
  paymentRef: paymentReference(
    "The id of the captured payment. Each payment of a user can buy only one voucher of an organization.",
    EXAMPLE.paymentRef,
  ),
});

examples.add(buyRequest, {
  payment: { summary: "A captured payment", value: { paymentRef: EXAMPLE.paymentRef } },
});

export const claimRequest = z
  .object({})
  .meta({ id: "ClaimRequest", description: "Fields are ignored, and the body may be omitted." });

/** The response to a claim or purchase. */
export const acquireResponse = named("Acquisition", {
  voucher: voucherView,
  alreadyConfirmed: flag(
    "False: this call gave the user the voucher. True: an earlier call did; this is the same voucher in its " +
      "current state.",
  ),
  verifyUrl,
  sandbox,
});

export type AcquireResponse = z.output<typeof acquireResponse>;

examples.add(acquireResponse, {
  acquired: {
    summary: "The user now has the voucher",
    value: { voucher: VOUCHER_EXAMPLE, alreadyConfirmed: false, verifyUrl: EXAMPLE_VERIFY_URL },
  },
  repeated: {
    summary: "A repeat: the same voucher",
    value: { voucher: VOUCHER_EXAMPLE, alreadyConfirmed: true, verifyUrl: EXAMPLE_VERIFY_URL },
  },
});
