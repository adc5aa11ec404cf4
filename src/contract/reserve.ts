import { z } from "zod";
import { EXAMPLE, examples } from "./example.ts";
import { code, sandbox, timestamp, voucherId } from "./fields.ts";

export const reserveRequest = z.object({ code }).meta({ id: "ReserveRequest" });

examples.add(reserveRequest, {
  code: { summary: "By its code", value: { code: EXAMPLE.code } },
});

export const reserveResponse = z
  .object({
    ticket: z.string().meta({
      description:
        "Identifies the reservation. Accepted wherever a code is accepted; required to release the reservation.",
      examples: [EXAMPLE.ticket],
    }),
    token: z.string().meta({
      description:
        "A secret that lets another key of the same organization redeem the reserved voucher. Treat it as a password: pass it on only to complete the sale, and never log it.",
      examples: [EXAMPLE.token],
    }),
    expiresAt: timestamp("When the reservation expires. Reserving again does not extend it.", EXAMPLE.reservedUntil),
    voucher: voucherId,
    sandbox,
  })
  .meta({ id: "Reservation" });

export type ReserveResponse = z.output<typeof reserveResponse>;

examples.add(reserveResponse, {
  reserved: {
    summary: "Reserved",
    value: {
      ticket: EXAMPLE.ticket,
      token: EXAMPLE.token,
      expiresAt: EXAMPLE.reservedUntil,
      voucher: EXAMPLE.voucherId,
    },
  },
});
