import { z } from "zod";
import { EXAMPLE } from "../../../platform/api/example.ts";
import {
  brand,
  productKey,
  productName,
  redeemCode,
  sandbox,
  serial,
  text,
  timestamp,
  verifyUrl,
  voucherId,
} from "../../../platform/api/fields.ts";
import { partnerEvent } from "../../chain/api/events.ts";
import { voucherView } from "../../voucher/api/voucher.ts";

// These objects are for operators, and for partners in the portal, so the API reference does not describe them.

/** A voucher as a search shows it: to operators for any organization, and to partners for their own. */
export const foundVoucher = z.object({
  id: voucherId,
  code: voucherView.shape.code,
  serial,
  organizationId: z.string(),
  batchId: z.string(),
  brand,
  productName,
  productKey,
  status: voucherView.shape.status,
  validUntil: voucherView.shape.validUntil,
  suspension: z
    .object({
      by: z.enum(["voucher", "batch"]).meta({
        description:
          "`batch`: the whole batch is suspended, or not all of its vouchers are resumed yet: resume the batch. " +
          "`voucher`: the voucher was suspended individually: resume the voucher.",
        examples: ["voucher"],
      }),
      reason: text("Why it was suspended. Null after an erasure.", "the letter was stolen").nullable(),
    })
    .nullable()
    .meta({
      description:
        "The suspension that must be ended first. Null without one. An expired voucher may have one: without it, an " +
        "extension makes the voucher usable.",
      examples: [null],
    }),
  redeemedAt: voucherView.shape.redeemedAt,
  /** The reference under which the voucher was redeemed. Null if it is not redeemed. */
  externalRef: z.string().nullable(),
  redeemCode: redeemCode.nullable(),
  sandbox,
});

export type FoundVoucher = z.output<typeof foundVoucher>;

/** The result of a search. */
export interface FoundVouchers {
  items: FoundVoucher[];
}

const pastReservation = z.object({
  ticket: z.string(),
  /**
   * Live: the reservation still reserves the voucher. Consumed: a redemption used it. Released: it was released, or the
   * voucher was voided. Expired: it was not used in time.
   */
  state: z.enum(["Live", "Consumed", "Released", "Expired"]),
  keyId: z.string(),
  keyLabel: z.string().nullable(),
  startedAt: timestamp("When it began.", EXAMPLE.reservedAt),
  expiresAt: timestamp("When it expires.", EXAMPLE.reservedUntil),
  endedAt: timestamp("When it ended; null while it is live.", EXAMPLE.reservedUntil).nullable(),
  /** Why the reservation was released: the caller's reason, or `voided`. */
  endReason: z.string().nullable(),
});

export type PastReservation = z.output<typeof pastReservation>;

/** A voucher with its events, reservations and redemption, for operators. */
export const voucherHistory = z.object({
  voucher: foundVoucher.extend({ verifyUrl }),
  events: z.array(partnerEvent),
  /** The newest 1 000 reservations, listed from oldest to newest. */
  reservations: z.array(pastReservation),
  redemption: z
    .object({
      externalRef: z.string(),
      redeemCode,
      redeemedAt: timestamp("When it happened.", EXAMPLE.redeemedAt),
      keyId: z.string(),
      keyLabel: z.string().nullable(),
      /** The ticket of the reservation that the redemption consumed. */
      ticket: z.string().nullable(),
      /** The id of the job that redeemed the voucher, as it appears in logs. */
      attemptId: z.string(),
    })
    .nullable(),
});

export type VoucherHistory = z.output<typeof voucherHistory>;
