import { resumeVoucher as resume, SUSPENDED, suspendVoucher as suspend } from "../../acts/voucher/suspend.ts";
import { examples } from "../../platform/api/example.ts";
import { named, sampleOf } from "../../platform/api/fields.ts";
import { oneVoucherEndpoint } from "../one-voucher.ts";

const [suspended, resumed] = [named("SuspendedVoucher", SUSPENDED.shape), named("ResumedVoucher", SUSPENDED.shape)];

examples.add(suspended, { suspended: { summary: "The voucher is suspended", value: sampleOf(suspended) } });
examples.add(resumed, {
  resumed: { summary: "The voucher is not suspended", value: { ...sampleOf(resumed), suspended: false } },
});

export const suspendVoucher = oneVoucherEndpoint(suspend, {
  operationId: "suspendVoucher",
  summary: "Suspend one voucher",
  description: `${suspend.about} Exactly one of \`code\` and \`id\` names it. A repeat is a success. A redeemed or \
voided voucher cannot be suspended.`,
  response: suspended,
  responseDescription: "The voucher is suspended.",
  run: suspend.run,
});

export const resumeVoucher = oneVoucherEndpoint(resume, {
  operationId: "resumeVoucher",
  summary: "Resume one voucher",
  description: `${resume.about} Exactly one of \`code\` and \`id\` names it. A repeat is a success.`,
  response: resumed,
  responseDescription: "The voucher is not suspended.",
  run: resume.run,
});
