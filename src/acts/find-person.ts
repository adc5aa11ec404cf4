import { EVENT_TYPES, type EventType } from "../core/chain/chain.ts";
import { formsOf } from "../core/voucher/references.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";
import type { Entity } from "./db/audit-entries.ts";
import {
  type ErasableEvent,
  type ErasureTarget,
  findErasable,
  findErasedForm,
  selectErasableEvents,
} from "./db/erasures.ts";

// What is stored about a person. `person erase` erases what these functions find, and `person show` lists it.

/** Number of vouchers in one transaction. It locks their rows for some 200 ms. */
const PORTION = 500;

/** The person whose data is erased: a user, or the customer of an order's reference or of a voucher. */
export type ErasedPerson =
  | { by: "user"; userId: string }
  | { by: "reference"; organizationId: string; externalRef: string }
  | { by: "voucher"; voucherId: string };

/** Acquisition events may name a person. So may redemptions, and the reasons of all events. */
const OF_ACQUISITION: readonly EventType[] = ["voucher.instance.claimed", "voucher.instance.bought"];
const TYPES: Record<ErasedPerson["by"], readonly EventType[]> = {
  reference: ["voucher.instance.redeemed"],
  user: [...OF_ACQUISITION, "voucher.instance.redeemed"],
  // Does not search erasing events: their reasons are not erased.
  voucher: EVENT_TYPES.filter((type) => type !== "voucher.instance.erased"),
};

const NO_TARGET: ErasureTarget = { organizationId: null, externalRef: null, userId: null };

/** The person once for each text under which data may be stored. A reference may have two stored forms. */
export function formsOfPerson(person: ErasedPerson): ErasedPerson[] {
  if (person.by !== "reference") return [person];
  return formsOf(person.externalRef).map((externalRef) => ({ ...person, externalRef }));
}

/** Finds, in portions, the vouchers with something to erase. With a time, only what was written until then counts. */
export async function* findPortions(
  db: Queryable,
  person: ErasedPerson,
  upTo: Date | null,
): AsyncGenerator<readonly string[]> {
  if (person.by === "voucher") {
    yield [person.voucherId];
    return;
  }
  const { by, ...named } = person;
  const target = { ...NO_TARGET, ...named, eventTypes: TYPES[by], limit: PORTION, upTo };
  for (let after = ""; ; ) {
    const voucherIds = await findErasable(db, { ...target, after });
    if (voucherIds.length === 0) return;
    after = voucherIds.at(-1) ?? after;
    yield voucherIds;
  }
}

/** The events of these vouchers that contain personal data about the person, in chain order. */
export function selectEvents(
  db: Queryable,
  person: ErasedPerson,
  voucherIds: readonly string[],
): Promise<ErasableEvent[]> {
  return selectErasableEvents(db, {
    voucherId: voucherIds,
    eventTypes: TYPES[person.by],
    userId: person.by === "user" ? person.userId : null,
  });
}

/** The entity of the audit entry. A user's entity has the text that replaces the user's id. */
export async function entityOf(db: Queryable, person: ErasedPerson): Promise<Entity> {
  if (person.by === "voucher") return { type: "VoucherInstance", id: person.voucherId };
  const [owner, plain] = person.by === "user" ? ["", person.userId] : [person.organizationId, person.externalRef];
  const form = await findErasedForm(db, { owner, text: plain });
  if (form === null) throw new AppError("not_found", `There is no organization ${owner}.`);
  if (person.by === "reference") return { type: "Organization", id: person.organizationId };
  if (form === plain) throw new AppError("invalid_request", "This user is erased already.");
  return { type: "User", id: form };
}
