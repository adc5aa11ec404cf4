import { z } from "zod";
import { voidVoucher as act } from "../../acts/voucher/void.ts";
import { AppError } from "../../platform/api/errors.ts";
import { examples } from "../../platform/api/example.ts";
import { flag, named, sampleOf, voucherId } from "../../platform/api/fields.ts";
import { oneVoucherEndpoint } from "../one-voucher.ts";

const voidedVoucher = named("VoidedVoucher", {
  id: voucherId,
  voided: z.literal(true).meta({ description: "The voucher is voided.", examples: [true] }),
  alreadyVoided: flag("Whether it was voided before this call.").meta({ examples: [false] }),
});

examples.add(voidedVoucher, { voided: { summary: "The voucher is voided", value: sampleOf(voidedVoucher) } });

export const voidVoucher = oneVoucherEndpoint(act, {
  operationId: "voidVoucher",
  summary: "Void one voucher",
  description: `${act.about} Exactly one of \`code\` and \`id\` names it. A repeat is a success. A voucher that was \
redeemed or has expired cannot be voided.`,
  response: voidedVoucher,
  responseDescription: "The voucher is voided.",
  run(ctx, id, values) {
    const voided = (alreadyVoided: boolean) => ({ id, voided: true as const, alreadyVoided });
    return act.run(ctx, id, values).then(
      () => voided(false),
      (error: unknown) => {
        if (error instanceof AppError && error.code === "voucher_voided") return voided(true);
        throw error;
      },
    );
  },
});
