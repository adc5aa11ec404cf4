import { z } from "zod";
import { EXAMPLE, type Examples, examples } from "../../../platform/api/example.ts";
import {
  benefitMonths,
  flag,
  named,
  productKey,
  productName,
  redeemCode,
  sampleOf,
  sandbox,
  serial,
  textUpTo,
  timestamp,
  usd,
  verifyUrl,
  voucherId,
} from "../../../platform/api/fields.ts";
import { always, wholeProblem } from "../../../platform/api/problems.ts";
import { code, reference, ticket } from "../../voucher/api/typed-fields.ts";

const TOKEN_MAX = 128;
const NOTE_MAX = 500;

// Optional fields accept null, because many clients send null for an empty field.
export const redeemRequest = z
  .object({
    code: code.nullish(),
    ticket: ticket.nullish(),
    externalRef: reference(
      "Your reference for this redemption, such as the order number. It is the idempotency key: it must be unique " +
        "in your organization and can redeem only one voucher.",
      EXAMPLE.externalRef,
    ),
    token: textUpTo(
      TOKEN_MAX,
      "The token from the reservation's response. Required only to redeem a voucher that another key of your " +
        "organization has reserved. A wrong token is refused, even from the key that made the reservation.",
      EXAMPLE.token,
    ).nullish(),
    note: textUpTo(
      NOTE_MAX,
      "Free text, kept permanently in the voucher's sealed history. Do not send personal data.",
      "Till 4, evening shift",
    ).nullish(),
  })
  .refine((input) => input.code != null || input.ticket != null, {
    error: wholeProblem("codeOrTicket"),
    when: always,
  })
  .refine((input) => input.code == null || input.ticket == null, {
    error: wholeProblem("codeAndTicket"),
    when: always,
  })
  .meta({
    id: "RedeemRequest",
    description: "Exactly one of `code` and `ticket` identifies the voucher. A null field is treated as absent.",
    override: ({ jsonSchema }) => {
      jsonSchema.oneOf = [onlyOne("code", "ticket"), onlyOne("ticket", "code")];
    },
  });

export type RedeemRequest = z.output<typeof redeemRequest>;

/** The JSON Schema of a request with the first field and without the second, which may be null. */
function onlyOne(given: string, absent: string) {
  return {
    title: `By its ${given}`,
    required: [given],
    properties: { [given]: { type: "string" as const }, [absent]: { type: "null" as const } },
  };
}

examples.add(redeemRequest, {
  code: { summary: "By its code", value: { code: EXAMPLE.code, externalRef: EXAMPLE.externalRef } },
  ticket: {
    summary: "By a reservation's ticket, with a note",
    value: { ticket: EXAMPLE.ticket, externalRef: EXAMPLE.externalRef, note: "Till 4, evening shift" },
  },
  till: {
    summary: "At a till: reserved by the web shop's key",
    value: { ticket: EXAMPLE.ticket, token: EXAMPLE.token, externalRef: EXAMPLE.externalRef },
  },
});

/** The fields of a redemption, in the order in which every response shows them. */
export const redeemedVoucher = {
  voucherInstanceId: voucherId,
  redeemCode,
  serial,
  productName,
  productKey,
  discountPriceUsd: usd("The voucher's value.", EXAMPLE.priceUsd),
  benefitMonths,
  redeemedAt: timestamp("When the voucher was redeemed.", EXAMPLE.redeemedAt),
};

export const redeemResponse = named("Redemption", {
  redeemed: z.literal(true).meta({ description: "The voucher is redeemed under your `externalRef`." }),
  alreadyConfirmed: flag(
    "Confirmed means redeemed under this `externalRef`. False: this call redeemed the voucher. True: an earlier " +
      "call redeemed it; the other fields repeat that call's result, and nothing was redeemed again. Both are " +
      "successes.",
  ),
  otherVoucher: z
    .literal(true)
    .optional()
    .meta({
      description:
        "Present and true only when this `externalRef` has redeemed another voucher than the one that this request " +
        "names. The voucher of this request was not redeemed: **do not accept it**. Either your references repeat, " +
        "or a retry has changed its code.",
    }),
  ...redeemedVoucher,
  verifyUrl,
  sandbox,
});

export type RedeemResponse = z.output<typeof redeemResponse>;

const REDEEMED = sampleOf(redeemResponse, { redeemed: true, alreadyConfirmed: false });

/** The examples of responses to a read of a reference's redemption. */
export const REDEMPTION_EXAMPLES: Examples<RedeemResponse> = {
  redeemed: { summary: "Redeemed under this reference", value: { ...REDEEMED, alreadyConfirmed: true } },
};

examples.add(redeemResponse, {
  redeemed: { summary: "Redeemed by this call", value: REDEEMED },
  repeated: { summary: "A repeat: redeemed by an earlier call", value: { ...REDEEMED, alreadyConfirmed: true } },
  otherVoucher: {
    summary: "A reused reference: it has redeemed another voucher, and this request's voucher is not redeemed",
    value: { ...REDEEMED, alreadyConfirmed: true, otherVoucher: true },
  },
});
