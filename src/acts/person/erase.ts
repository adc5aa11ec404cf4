import { act } from "../act.ts";
import { erasePerson } from "../erase-person.ts";
import { optional, text } from "../fields.ts";
import { pluralize } from "../words.ts";
import { FIELDS_ON_ORGANIZATION, openPerson, PERSON_FIELDS } from "./named-person.ts";

export const erase = act({
  name: "person erase",
  on: "voucher",
  mayStandAlone: true,
  role: "admin",
  title: "Erase what identifies a person",
  about:
    "Personal data in events is erased for good. References are replaced, so that a retry is still recognized. " +
    "Hashes, times, amounts and codes stay.",
  examples: ["--user 7f3c… --yes", '--org org_… --ref order-20261121-0007 --reason "asked by the customer"'],
  fields: {
    ...PERSON_FIELDS,
    reason: optional(text("Reason", 200, { hint: "The sealed history keeps it, so it must not name a person." })),
  },
  confirm: {
    loss: () => "This permanently erases what identifies the person.",
    typed: {
      // Does not ask for the voucher's code, because no page shows the code of an Active voucher.
      name: "confirmation",
      label: "The voucher's id (to confirm)",
      isNot: "is another one",
      matches: (typed, { voucherId }) => typed === voucherId,
    },
  },
  furtherForm: {
    on: "organization",
    field: "org",
    fields: FIELDS_ON_ORGANIZATION,
    typed: {
      name: "confirmation",
      label: "The reference again (to confirm)",
      isNot: "is another one",
      matches: (typed, _lineage, { ref }) => typed === ref,
    },
  },
  async run(ctx, id, { user, ref, org, reason }, advance) {
    const person = await openPerson(ctx, id, { user, ref, org });
    return erasePerson(ctx, person, reason, (soFar) => advance(soFar.vouchers, soFar.vouchers, soFar));
  },
  said: ({ vouchers, events, references, damaged = 0 }) => {
    if (vouchers + events + references + damaged === 0)
      return "Nothing was found to erase. Check the spelling: a subject is compared exactly.";
    return `Erased ${pluralize(events, "event")} of ${pluralize(vouchers, "voucher")}, and \
${pluralize(references, "other text")}.${
      damaged === 0 ? "" : ` Nothing was erased of ${pluralize(damaged, "damaged voucher")}: repair and run it again.`
    }`;
  },
  partly: ({ vouchers }) =>
    `Erased personal data of ${pluralize(vouchers, "voucher")}. Run it again to erase the rest.`,
  isReport: true,
});
