import { AppError } from "../../platform/api/errors.ts";
import { act, InvalidValues } from "../act.ts";
import { type ErasedPerson, erasePerson } from "../erase-person.ts";
import { optional, subject, text } from "../fields.ts";
import { readLineage } from "../read-lineage.ts";
import { pluralize } from "../words.ts";

const ofCommand = { commandOnly: true } as const;
const reference = text("Reference", 128, { hint: "A partner's reference, with its organization." });

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
    user: optional(
      subject("User", { ...ofCommand, hint: "The subject of the user's tokens.", placeholder: "<subject>" }),
    ),
    ref: optional({ ...reference, ...ofCommand }),
    org: optional(
      text("Organization", 128, { ...ofCommand, hint: "The organization of the reference, or of the voucher." }),
    ),
    reason: optional(text("Reason", 200, { hint: "The sealed history keeps it, so it must not name a person." })),
  },
  confirm: {
    loss: () => "This permanently erases what identifies the person.",
    typed: {
      // Not the code, which no page shows while the voucher is Active.
      name: "confirmation",
      label: "The voucher's id (to confirm)",
      isNot: "is another one",
      matches: (typed, { voucherId }) => typed === voucherId,
    },
  },
  furtherForm: {
    on: "organization",
    field: "org",
    fields: { ref: { ...reference, hint: "The organization's reference of the order or the batch." } },
    typed: {
      name: "confirmation",
      label: "The reference again (to confirm)",
      isNot: "is another one",
      matches: (typed, _lineage, { ref }) => typed === ref,
    },
  },
  async run(ctx, id, { user, ref, org, reason }, advance) {
    const person = personOf(id, user, org, ref);
    if (person.by === "voucher" && org !== null && (await readLineage(ctx, "vouchers", id)).organizationId !== org)
      throw new AppError("not_found", `Organization ${org} has no voucher ${id}.`);
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

/** What the values of an erasure do not name: one person. Null if they do. */
export function findPersonProblem(given: Partial<Record<"voucher" | "user" | "ref" | "org", unknown>>): string | null {
  const { voucher, user, ref, org } = given;
  const isOne = [voucher, user, ref].filter(Boolean).length === 1 && (ref ? Boolean(org) : !(user && org));
  return isOne ? null : "Give one voucher, one user, or one reference with its organization";
}

function personOf(voucherId: string, userId: string | null, org: string | null, ref: string | null): ErasedPerson {
  const problem = findPersonProblem({ voucher: voucherId, user: userId, ref, org });
  if (problem !== null) throw new InvalidValues([{ field: "user", say: () => () => problem }]);
  if (userId !== null) return { by: "user", userId };
  return ref !== null && org !== null
    ? { by: "reference", organizationId: org, externalRef: ref }
    : { by: "voucher", voucherId };
}
