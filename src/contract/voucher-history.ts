import { z } from "zod";
import { partnerEvent } from "./events.ts";
import { EXAMPLE } from "./example.ts";
import { brand, productKey, productName, serial, timestamp, verifyUrl, voucherId } from "./fields.ts";
import { sandbox } from "./sandbox.ts";
import { voucherView } from "./voucher.ts";

const keyId = z.string().meta({ description: "The id of the API key.", examples: [EXAMPLE.keyId] });
const keyLabel = z
  .string()
  .nullable()
  .meta({ description: "The key's label, if it has one.", examples: ["till 4"] });
const ticket = z.string().meta({ description: "The ticket.", examples: [EXAMPLE.ticket] });
const externalRef = z.string().meta({ description: "The partner's reference.", examples: [EXAMPLE.externalRef] });
const redeemCode = z.string().meta({ description: "The code that the customer got.", examples: [EXAMPLE.redeemCode] });

/** A voucher as operators find it, in any organization. */
export const foundVoucher = z.object({
  id: voucherId,
  code: voucherView.shape.code,
  serial,
  organizationId: z.string().meta({ description: "The organization that owns the voucher." }),
  batchId: z.string().meta({ description: "The batch that it was issued in." }),
  brand,
  productName,
  productKey,
  status: voucherView.shape.status,
  validUntil: voucherView.shape.validUntil,
  redeemedAt: voucherView.shape.redeemedAt,
  externalRef: externalRef.nullable().meta({ description: "The reference that redeemed it; null until then." }),
  redeemCode: redeemCode.nullable().meta({ description: "The code that the customer got; null until then." }),
  sandbox,
});

export type FoundVoucher = z.output<typeof foundVoucher>;

/** The result of a search. */
const foundVouchers = z.object({ items: z.array(foundVoucher).meta({ description: "In order of ids." }) });

export type FoundVouchers = z.output<typeof foundVouchers>;

const pastReservation = z.object({
  ticket,
  state: z.enum(["Live", "Consumed", "Released", "Expired"]).meta({
    description:
      "Live: it still counts. Consumed: a redemption ended it. Released: a release or a voiding ended it. Expired: its time is over.",
  }),
  keyId,
  keyLabel,
  startedAt: timestamp("When it began.", EXAMPLE.reservedAt),
  expiresAt: timestamp("When its time is over.", EXAMPLE.reservedUntil),
  endedAt: timestamp("When it ended; null while it is live.", EXAMPLE.reservedUntil).nullable(),
  endReason: z
    .string()
    .nullable()
    .meta({ description: "Why it was released, as the caller said.", examples: ["voided"] }),
});

export type PastReservation = z.output<typeof pastReservation>;

/** A voucher's whole life as operators see it. */
export const voucherHistory = z.object({
  voucher: foundVoucher.extend({ verifyUrl }),
  events: z.array(partnerEvent).meta({ description: "In the order of `sequence`." }),
  reservations: z.array(pastReservation).meta({ description: "The newest 1 000, oldest first." }),
  redemption: z
    .object({
      externalRef,
      redeemCode,
      redeemedAt: timestamp("When it happened.", EXAMPLE.redeemedAt),
      keyId,
      keyLabel,
      ticket: ticket.nullable().meta({ description: "The reservation that it consumed, if there was one." }),
      attemptId: z.string().meta({ description: "The id of the job that redeemed the voucher, as logs show it." }),
    })
    .nullable()
    .meta({ description: "Null until the voucher is redeemed." }),
});

export type VoucherHistory = z.output<typeof voucherHistory>;
