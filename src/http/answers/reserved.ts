import { z } from "zod";
import { EXAMPLE } from "./example.ts";
import { timestamp, voucherId } from "./values.ts";

/** The answer to reserve (contract, "Reservation"). */
export const reserved = z
  .object({
    ticket: z.string().meta({
      description: "Names the hold. Works wherever a code does, and is what release takes.",
      examples: [EXAMPLE.ticket],
    }),
    token: z.string().meta({
      description:
        "A secret that lets another key of the same organization redeem the held voucher. Treat it as a password: hand it on only to whoever is to finish the sale, and never log it.",
      examples: [EXAMPLE.token],
    }),
    expiresAt: timestamp("When the hold ends by itself. A repeated reserve does not extend it.", EXAMPLE.reservedUntil),
    voucher: voucherId,
  })
  .meta({ id: "Reservation" });
