import { extendVoucher as act, EXTENDED } from "../../acts/voucher/extend.ts";
import { examples } from "../../platform/api/example.ts";
import { named, sampleOf } from "../../platform/api/fields.ts";
import { oneVoucherEndpoint } from "../one-voucher.ts";

const extendedVoucher = named("ExtendedVoucher", EXTENDED.shape);

examples.add(extendedVoucher, { extended: { summary: "The voucher is extended", value: sampleOf(extendedVoucher) } });

export const extendVoucher = oneVoucherEndpoint(act, {
  operationId: "extendVoucher",
  summary: "Extend one voucher",
  description: `${act.about} Exactly one of \`code\` and \`id\` names it. \`validUntil\` must be in the future, and \
later than the voucher's end. A repeat is a success. A redeemed or voided voucher cannot be extended.`,
  response: extendedVoucher,
  responseDescription: "The voucher has the new end.",
  run: act.run,
});
