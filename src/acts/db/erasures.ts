import type { EventType } from "../../core/chain/chain.ts";
import {
  arrayOf,
  bigint,
  integer,
  jsonb,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../platform/db/columns.ts";
import type { Transaction } from "../../platform/db/pool.ts";
import { columnsOf, Statements } from "../../platform/db/statements.ts";

export const sql = new Statements(new URL("./erasures.sql", import.meta.url));

/** The subject of an erasure: a reference with its organization, or a user. */
export interface ErasureTarget {
  organizationId: string | null;
  externalRef: string | null;
  userId: string | null;
}

export const findErasable = sql.values(
  "find_erasable",
  { voucherId: text },
  {
    organizationId: orNull(text),
    externalRef: orNull(text),
    userId: orNull(text),
    eventTypes: arrayOf(text),
    after: text,
    limit: integer,
    upTo: orNull(timestamptz),
  },
);

/** An event that can be erased, with its texts that identify a person. */
const ERASABLE_EVENT = {
  voucherId: text,
  sequence: integer,
  occurredAt: timestamptz,
  eventType: textOf<EventType>(),
  texts: jsonb<Partial<Record<TextOfEvent, string | null>>>(),
};
/** The texts in an event that identify a person. */
export type TextOfEvent = "actorConnectedId" | "referrer" | "paymentRef" | "externalRef" | "note" | "reason";
export type ErasableEvent = Row<typeof ERASABLE_EVENT>;

export const selectErasableEvents = sql.rows("select_erasable_events", ERASABLE_EVENT, {
  voucherId: arrayOf(text),
  eventTypes: arrayOf(text),
  userId: orNull(text),
});

/** A text outside events that an erasure replaces or removes. `id` names the row that has it. */
const HELD_TEXT = { kind: text, id: text, at: timestamptz, text: orNull(text) };
export type HeldText = Row<typeof HELD_TEXT>;

export const selectTextsBesideEvents = sql.rows("select_texts_beside_events", HELD_TEXT, {
  voucherId: arrayOf(text),
  eventVoucherId: arrayOf(text),
  eventType: arrayOf(text),
  reason: arrayOf(orNull(text)),
  userId: orNull(text),
});
export const selectTextsOfUser = sql.rows("select_texts_of_user", HELD_TEXT, { userId: text });
export const selectTextsOfBatchReference = sql.rows("select_texts_of_batch_reference", HELD_TEXT, {
  organizationId: text,
  reference: text,
});

/** The keys of the locks of the references and users of vouchers. */
export const selectTexts = sql.rows(
  "select_texts",
  { id: text, kind: integer, text: integer },
  { voucherId: arrayOf(text) },
);
const tryLockTexts = sql.values(
  "try_lock_texts",
  { id: text },
  { id: arrayOf(text), kind: arrayOf(integer), text: arrayOf(integer) },
);
/** Waits for the lock of a reference or a user, and keeps it until the transaction ends. */
export const waitForText = sql.execute("wait_for_text", { kind: integer, text: integer });

/**
 * Locks the references and users of locked vouchers, without waiting. Returns the vouchers for which all were locked.
 * {@link eraseEvents} takes the same locks, so for these vouchers it does not wait.
 */
export async function lockFreeTexts(tx: Transaction, voucherIds: ReadonlySet<string>): Promise<Set<string>> {
  const texts = await selectTexts(tx, [...voucherIds]);
  const busy = new Set(await tryLockTexts(tx, columnsOf(texts, "id", "kind", "text")));
  return new Set([...voucherIds].filter((id) => !busy.has(id)));
}

const callEraseEvents = sql.requiredRow(
  "erase_events",
  { vouchers: bigint, events: bigint, texts: bigint },
  { voucherId: arrayOf(text), sequence: arrayOf(orNull(integer)), upTo: orNull(timestamptz) },
);

/**
 * Erases the events that erasing events of this transaction list, and the reasons of the vouchers' reservations that
 * ended up to a time. The sequence is null for a voucher without an erasing event. Returns the numbers of erased
 * events, of replaced texts and of vouchers from which something was erased.
 */
export function eraseEvents(
  tx: Transaction,
  erasing: readonly { voucherId: string; sequence: number | null }[],
  upTo: Date | null = null,
): Promise<{ vouchers: number; events: number; texts: number }> {
  return callEraseEvents(tx, { ...columnsOf(erasing, "voucherId", "sequence"), upTo });
}

/** Replaces a user's id outside the tables of vouchers, in what was written up to a time. Returns how often. */
export const eraseUser = sql.requiredValue(
  "erase_user",
  { texts: bigint },
  { userId: text, upTo: orNull(timestamptz) },
);

/**
 * Waits for transactions that write redemptions and batches under a reference, so that later statements see their rows.
 * If the reference's batch was issued up to a time, replaces the batch's reference. Returns the number of replaced
 * texts.
 */
export const eraseReference = sql.requiredValue(
  "erase_reference",
  { texts: bigint },
  { organizationId: text, reference: text, upTo: orNull(timestamptz) },
);

/** The text that replaces an organization's text or, if `owner` is empty, a user's id. Null for an unknown owner. */
export const findErasedForm = sql.value("find_erased_form", { form: text }, { owner: text, text });

export const selectErasures = sql.rows(
  "select_erasures",
  { voucherId: text, erasedAt: timestamptz, sequences: arrayOf(integer) },
  { since: timestamptz },
);
export const selectErasedReferences = sql.rows(
  "select_erased_references",
  { organizationId: text, reference: text, erasedAt: timestamptz },
  { since: timestamptz },
);
export const selectErasedUsers = sql.rows(
  "select_erased_users",
  { form: text, erasedAt: timestamptz },
  { since: timestamptz },
);
export const findUsersToErase = sql.rows("find_users_to_erase", { userId: text, form: text }, { form: arrayOf(text) });
export const findReferencesToErase = sql.rows(
  "find_references_to_erase",
  { organizationId: text, externalRef: text, form: text },
  { organizationId: arrayOf(text), form: arrayOf(text) },
);
