import type { z } from "zod";
import { EXAMPLE, examples } from "../../../platform/api/example.ts";
import { named, sampleOf, sandbox, text, timestamp, voucherId } from "../../../platform/api/fields.ts";
import { code } from "../../voucher/api/typed-fields.ts";

export const reserveRequest = named("ReserveRequest", { code });

examples.add(reserveRequest, {
  code: { summary: "By its code", value: { code: EXAMPLE.code } },
});

export const reserveResponse = named("Reservation", {
  ticket: text(
    "Identifies the reservation. Accepted wherever a code is accepted; required to release the reservation.",
    EXAMPLE.ticket,
  ),
  token: text(
    "A secret that lets another key of the same organization redeem the reserved voucher. Treat it as a password: " +
      "pass it on only to complete the sale, and never log it.",
    EXAMPLE.token,
  ),
  expiresAt: timestamp("When the reservation expires. Reserving again does not extend it.", EXAMPLE.reservedUntil),
  voucher: voucherId,
  sandbox,
});

export type ReserveResponse = z.output<typeof reserveResponse>;

examples.add(reserveResponse, { reserved: { summary: "Reserved", value: sampleOf(reserveResponse) } });
