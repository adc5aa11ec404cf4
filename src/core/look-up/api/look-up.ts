import { z } from "zod";
import { EXAMPLE, EXAMPLE_VERIFY_URL, examples } from "../../../platform/api/example.ts";
import { flag, named, sampleOf, sandbox, text, timestamp, verifyUrl } from "../../../platform/api/fields.ts";
import { VOUCHER_EXAMPLE, voucherView } from "../../voucher/api/voucher.ts";

const reservation = z
  .object({
    ticket: text(
      "The ticket. Shown only to the key that made the reservation; null for other keys.",
      EXAMPLE.ticket,
    ).nullable(),
    startedAt: timestamp("When the reservation began.", EXAMPLE.reservedAt),
    expiresAt: timestamp("When the reservation expires.", EXAMPLE.reservedUntil),
    heldByCaller: flag("Whether the calling key made the reservation."),
  })
  .meta({ id: "LiveReservation", description: "The voucher's live reservation. Never contains its token." });

export const lookUpResponse = named("LookUp", {
  voucher: voucherView,
  reservation: reservation.nullable().meta({ description: "The live reservation; null when there is none." }),
  verifyUrl,
  sandbox,
});

export type LookUpResponse = z.output<typeof lookUpResponse>;

examples.add(lookUpResponse, {
  free: {
    summary: "Active and not reserved",
    value: { voucher: VOUCHER_EXAMPLE, reservation: null, verifyUrl: EXAMPLE_VERIFY_URL },
  },
  reserved: {
    summary: "Reserved by the calling key",
    value: {
      voucher: VOUCHER_EXAMPLE,
      reservation: sampleOf(reservation, { heldByCaller: true }),
      verifyUrl: EXAMPLE_VERIFY_URL,
    },
  },
  used: {
    summary: "Redeemed",
    value: {
      voucher: { ...VOUCHER_EXAMPLE, status: "Redeemed", redeemedAt: EXAMPLE.redeemedAt },
      reservation: null,
      verifyUrl: EXAMPLE_VERIFY_URL,
    },
  },
});
