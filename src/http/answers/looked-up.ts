import { z } from "zod";
import { EXAMPLE } from "./example.ts";
import { timestamp, verifyUrl } from "./values.ts";
import { voucher } from "./voucher.ts";

const reservation = z
  .object({
    ticket: z
      .string()
      .nullable()
      .meta({
        description: "The hold's ticket for the key that made it; null for every other key.",
        examples: [EXAMPLE.ticket],
      }),
    startedAt: timestamp("When the hold began.", EXAMPLE.reservedAt),
    expiresAt: timestamp("When the hold ends by itself.", EXAMPLE.reservedUntil),
    heldByCaller: z.boolean().meta({ description: "Whether the calling key made the hold." }),
  })
  .meta({
    id: "LiveReservation",
    description: "The hold that is on the voucher at the moment. Never tells its token.",
  });

/** The answer to a look-up (contract, "Voucher"). */
export const lookedUp = z
  .object({
    voucher,
    reservation: reservation.nullable().meta({ description: "The live hold; null when there is none." }),
    verifyUrl,
  })
  .meta({ id: "LookUp" });
