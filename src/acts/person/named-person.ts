import { AppError } from "../../platform/api/errors.ts";
import { InvalidValues } from "../act.ts";
import { optional, subject, text, type Values } from "../fields.ts";
import type { ErasedPerson } from "../find-person.ts";
import { readLineage } from "../read-lineage.ts";
import type { AuditContext } from "../with-audit-entry.ts";

const ofCommand = { commandOnly: true } as const;
const reference = text("Reference", 128, { hint: "A partner's reference, with its organization." });

/** How an act names a person, other than by the voucher on which it acts. */
export const PERSON_FIELDS = {
  user: optional(
    subject("User", { ...ofCommand, hint: "The subject of the user's tokens.", placeholder: "<subject>" }),
  ),
  ref: optional({ ...reference, ...ofCommand }),
  org: optional(
    text("Organization", 128, { ...ofCommand, hint: "The organization of the reference, or of the voucher." }),
  ),
};

/** The fields that name a person in a form on an organization. */
export const FIELDS_ON_ORGANIZATION = {
  ref: { ...reference, hint: "The organization's reference of the order or the batch." },
};

/** The problem with these values if they do not name exactly one person. Null if they do. */
export function findPersonProblem(given: Partial<Record<"voucher" | "user" | "ref" | "org", unknown>>): string | null {
  const { voucher, user, ref, org } = given;
  const isOne = [voucher, user, ref].filter(Boolean).length === 1 && (ref ? Boolean(org) : !(user && org));
  return isOne ? null : "Give one voucher, one user, or one reference with its organization";
}

/**
 * The person that an act's values name.
 * @throws InvalidValues unless they name one person; AppError `not_found` if the organization has no such voucher.
 */
export async function openPerson(
  ctx: Pick<AuditContext, "pool">,
  voucherId: string,
  { user, ref, org }: Values<typeof PERSON_FIELDS>,
): Promise<ErasedPerson> {
  const problem = findPersonProblem({ voucher: voucherId, user, ref, org });
  if (problem !== null) throw new InvalidValues([{ field: "user", say: () => () => problem }]);
  if (user !== null) return { by: "user", userId: user };
  if (ref !== null && org !== null) return { by: "reference", organizationId: org, externalRef: ref };
  if (org !== null && (await readLineage(ctx, "vouchers", voucherId)).organizationId !== org)
    throw new AppError("not_found", `Organization ${org} has no voucher ${voucherId}.`);
  return { by: "voucher", voucherId };
}
