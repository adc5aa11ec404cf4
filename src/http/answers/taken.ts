import { z } from "zod";
import type { Examples } from "../endpoint.ts";
import { EXAMPLE_VERIFY_URL } from "./example.ts";
import { verifyUrl } from "./values.ts";
import { VOUCHER_EXAMPLE, voucher } from "./voucher.ts";

/** The answer to claim and buy. */
export const taken = z
  .object({
    voucher,
    alreadyConfirmed: z.boolean().meta({
      description: "False: this call took it. True: an earlier one had; it is the same voucher, as it stands now.",
    }),
    verifyUrl,
  })
  .meta({ id: "Taken" });

export const TAKEN_EXAMPLES: Examples<z.infer<typeof taken>> = {
  taken: {
    summary: "The voucher is the user's",
    value: { voucher: VOUCHER_EXAMPLE, alreadyConfirmed: false, verifyUrl: EXAMPLE_VERIFY_URL },
  },
  repeated: {
    summary: "A repeat: the same voucher",
    value: { voucher: VOUCHER_EXAMPLE, alreadyConfirmed: true, verifyUrl: EXAMPLE_VERIFY_URL },
  },
};
