import { z } from "zod";

/** The answer to release. */
export const released = z
  .discriminatedUnion("released", [
    z
      .object({ released: z.literal(true).meta({ description: "This call ended the hold." }) })
      .meta({ id: "Released", description: "The voucher is free again." }),
    z
      .object({
        released: z.literal(false).meta({ description: "There was no hold to end." }),
        reason: z.string().meta({ description: "Why there was nothing to release, in plain words." }),
      })
      .meta({ id: "NothingReleased", description: "The ticket holds nothing; that is no error." }),
  ])
  .meta({ id: "Release" });
