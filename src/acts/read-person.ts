import { type Transaction, usePlansOfService } from "../platform/db/pool.ts";
import { onSnapshot } from "../platform/db/transaction.ts";
import {
  type ErasableEvent,
  type HeldText,
  selectTextsBesideEvents,
  selectTextsOfBatchReference,
  selectTextsOfUser,
} from "./db/erasures.ts";
import { type ErasedPerson, entityOf, findPortions, formsOfPerson, selectEvents } from "./find-person.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** What is stored about a person, and what `person erase` would erase. A text is null if it is about another person. */
export interface HeldAboutPerson {
  events: ErasableEvent[];
  texts: HeldText[];
}

/**
 * Reads what is stored about a person, and commits the audit entry. The entry names the person only in the form that an
 * erasure's entry has.
 * @throws AppError `invalid_request` for a text that was already replaced, `not_found` for an unknown organization.
 */
export async function readPerson(ctx: AuditContext, person: ErasedPerson): Promise<HeldAboutPerson> {
  ctx.audited.arguments = { by: person.by };
  const entity = await entityOf(ctx.pool, person);
  const held = await onSnapshot(ctx.pool, (tx) => findHeld(tx, person));
  await withAuditEntry(ctx, entity, async () => undefined, {
    before: { shown: false },
    after: () => ({ shown: true, events: held.events.length, texts: held.texts.length }),
  });
  return held;
}

async function findHeld(tx: Transaction, person: ErasedPerson): Promise<HeldAboutPerson> {
  await usePlansOfService(tx);
  const held: HeldAboutPerson = { events: [], texts: [] };
  for (const one of formsOfPerson(person)) {
    for await (const voucherIds of findPortions(tx, one, null)) {
      const { events, texts } = await readVouchers(tx, one, voucherIds);
      held.events.push(...events);
      held.texts.push(...texts);
    }
    if (one.by === "user") held.texts.push(...(await selectTextsOfUser(tx, one.userId)));
    if (one.by === "reference") {
      const { organizationId, externalRef: reference } = one;
      held.texts.push(...(await selectTextsOfBatchReference(tx, { organizationId, reference })));
    }
  }
  return held;
}

async function readVouchers(
  tx: Transaction,
  person: ErasedPerson,
  voucherIds: readonly string[],
): Promise<HeldAboutPerson> {
  const events = await selectEvents(tx, person, voucherIds);
  const userId = person.by === "user" ? person.userId : null;
  const texts = await selectTextsBesideEvents(tx, {
    voucherId: voucherIds,
    eventVoucherId: events.map(({ voucherId }) => voucherId),
    eventType: events.map(({ eventType }) => eventType),
    reason: events.map((event) => event.texts.reason ?? null),
    userId,
  });
  return { events: events.map((event) => withoutOthers(event, userId)), texts };
}

/** Leaves out the texts of other users: the referrer, and users who claimed through the user's links. */
function withoutOthers(event: ErasableEvent, userId: string | null): ErasableEvent {
  const { actorConnectedId, referrer } = event.texts;
  const texts = { ...event.texts };
  if (actorConnectedId !== undefined && userId !== null && actorConnectedId !== userId) texts.actorConnectedId = null;
  if (referrer !== undefined && referrer !== userId) texts.referrer = null;
  return { ...event, texts };
}
