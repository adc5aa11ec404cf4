import { z } from "zod";
import {
  brand,
  productKey,
  productName,
  redeemCode,
  sandbox,
  serial,
  text,
  voucherId,
} from "../../../platform/api/fields.ts";
import type { PartnerEvent } from "../../chain/api/events.ts";
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

export interface PastReservation {
  ticket: string;
  /**
   * Live: the reservation still reserves the voucher. Consumed: a redemption used it. Released: it was released, or the
   * voucher was voided. Expired: it was not used in time.
   */
  state: "Live" | "Consumed" | "Released" | "Expired";
  keyId: string;
  keyLabel: string | null;
  startedAt: string;
  expiresAt: string;
  /** Null while it is live. */
  endedAt: string | null;
  /** Why the reservation was released: the caller's reason, or `voided`. */
  endReason: string | null;
}

/** A voucher with its events, reservations and redemption, for operators. */
export interface VoucherHistory {
  voucher: FoundVoucher & { verifyUrl: string };
  events: PartnerEvent[];
  /** The newest 1 000 reservations, listed from oldest to newest. */
  reservations: PastReservation[];
  redemption: {
    externalRef: string;
    redeemCode: string;
    redeemedAt: string;
    keyId: string;
    keyLabel: string | null;
    /** The ticket of the reservation that the redemption consumed. */
    ticket: string | null;
    /** The id of the job that redeemed the voucher, as it appears in logs. */
    attemptId: string;
  } | null;
}
