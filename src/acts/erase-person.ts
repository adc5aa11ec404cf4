import { EVENT_TYPES, type EventType, nextEvent } from "../core/chain/chain.ts";
import { findDamaged } from "../core/chain/db/broken-chains.ts";
import { appendEvents, openSinks, readPending } from "../core/chain/seal-events.ts";
import { advanceChains, readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { formsOf } from "../core/voucher/references.ts";
import { AppError } from "../platform/api/errors.ts";
import { type Transaction, usePlansOfService } from "../platform/db/pool.ts";
import { inTransaction, retryConflicts, waitForLocks, write } from "../platform/db/transaction.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import type { Entity } from "./db/audit-entries.ts";
import {
  type ErasableEvent,
  type ErasureTarget,
  eraseEvents,
  eraseReference,
  eraseUser,
  findErasable,
  findErasedForm,
  lockFreeTexts,
  selectErasableEvents,
  selectTexts,
  waitForText,
} from "./db/erasures.ts";
import { type Lock, lockBusyLast } from "./lock-busy-last.ts";
import { type AuditContext, lockWaitOf, withAuditEntry } from "./with-audit-entry.ts";

/** Vouchers in one transaction. It keeps their rows locked for some 200 ms. */
const PORTION = 500;

/** The person whose data is erased: a user, or the customer of an order's reference or of a voucher. */
export type ErasedPerson =
  | { by: "user"; userId: string }
  | { by: "reference"; organizationId: string; externalRef: string }
  | { by: "voucher"; voucherId: string };

/** The number of vouchers and events from which data was erased, and of texts that were replaced or removed. */
export interface ErasureResult {
  vouchers: number;
  events: number;
  references: number;
  /** Vouchers of which nothing was erased, because their chains accept no further event. Absent without any. */
  damaged?: number;
}

/** The result of a replay. */
export interface ReplayResult extends ErasureResult {
  /** Listed events that were not erased: another event has their sequence, as after a failover that lost events. */
  otherEvents: number;
}

/** The result of one transaction. */
interface ErasedPortion extends Omit<ErasureResult, "damaged"> {
  /** The ids of damaged vouchers. */
  damaged: readonly string[];
  erased: { voucherId: string; sequences: number[] }[];
  /** The vouchers that the transaction could lock. */
  locked: ReadonlySet<string>;
}

/** The types of acquisition events, which may name a person. So may a redemption, and the reason of any event. */
const OF_ACQUISITION: readonly EventType[] = ["voucher.instance.claimed", "voucher.instance.bought"];
const TYPES: Record<ErasedPerson["by"], readonly EventType[]> = {
  reference: ["voucher.instance.redeemed"],
  user: [...OF_ACQUISITION, "voucher.instance.redeemed"],
  // The reason of an erasure stays.
  voucher: EVENT_TYPES.filter((type) => type !== "voucher.instance.erased"),
};

const NO_TARGET: ErasureTarget = { organizationId: null, externalRef: null, userId: null };

/**
 * Erases what identifies a person from sealed events and from all tables. Each chain gets a sealed event that names its
 * erased events. Vouchers are erased in portions, each in one transaction with an audit entry. A run can therefore stop
 * at any point, and the next run erases the rest. A run that finds nothing returns zeros.
 * @param reason is sealed, so it must not identify a person.
 * @param onPortion receives the counts so far. If it throws, the run ends with that error.
 * @param upTo leaves what was written after this time. Null erases all.
 * @throws AppError `invalid_request` for a text that was replaced, `not_found` for an unknown organization,
 * `wrong_status` during an upgrade.
 */
export async function erasePerson(
  ctx: AuditContext,
  person: ErasedPerson,
  reason: string | null,
  onPortion: (soFar: ErasureResult) => void = () => undefined,
  upTo: Date | null = null,
): Promise<ErasureResult> {
  const total: ErasureResult = { vouchers: 0, events: 0, references: 0 };
  // A voucher may be found twice.
  const damaged = new Set<string>();
  const add = (portion: ErasedPortion) => {
    for (const id of portion.damaged) damaged.add(id);
    addCounts(total, { ...portion, damaged: 0 });
    if (damaged.size > 0) total.damaged = damaged.size;
    onPortion({ ...total });
  };
  // The audit arguments name the kind of subject and the reason only. The entry's entity identifies the subject.
  ctx.audited.arguments = { by: person.by, ...(reason !== null && { reason }) };
  const entity = await entityOf(ctx, person);
  const eraseAll = async (voucherIds: readonly string[], lock: Lock) => {
    const work: Work = { voucherIds, lock, person, reason, upTo };
    const portion = await eraseAudited(ctx, entity, (tx) => eraseLocked(ctx, tx, work));
    add(portion);
    return portion.locked;
  };
  const eraseOther = async (erase: (tx: Transaction) => Promise<number>) =>
    add(await eraseAudited(ctx, entity, async (tx) => ({ ...NOTHING, references: await erase(tx) })));
  const eventTypes = TYPES[person.by];
  const findPortions = async function* (target: ErasureTarget) {
    for (let after = ""; ; ) {
      const voucherIds = await findErasable(ctx.pool, { ...target, eventTypes, after, limit: PORTION, upTo });
      if (voucherIds.length === 0) break;
      after = voucherIds.at(-1) ?? after;
      yield voucherIds;
    }
  };
  const eraseFound = (target: ErasureTarget) => lockBusyLast(ctx, findPortions(target), eraseAll, awaitFreeTexts(ctx));
  // Each kind searches last, to find rows of transactions that the erasure has waited for.
  switch (person.by) {
    case "voucher":
      await lockBusyLast(ctx, [[person.voucherId]], eraseAll, awaitFreeTexts(ctx));
      break;
    case "reference":
      for (const reference of formsOf(person.externalRef)) {
        const { organizationId } = person;
        await eraseOther((tx) => eraseReference(tx, { organizationId, reference, upTo }));
        await eraseFound({ ...NO_TARGET, organizationId, externalRef: reference });
      }
      break;
    case "user": {
      const { userId } = person;
      await eraseFound({ ...NO_TARGET, userId });
      await eraseOther((tx) => eraseUser(tx, { userId, upTo }));
      await eraseFound({ ...NO_TARGET, userId });
    }
  }
  return total;
}

/**
 * Erases the given events again, as after a restore. Skips events that do not exist, are already erased or contain no
 * personal data. Also skips events that occurred after the erasure, because another event has that sequence now, and
 * reasons of releases after it.
 */
export async function eraseEventsAgain(
  ctx: AuditContext,
  items: readonly { voucherId: string; sequences: readonly number[]; erasedAt: Date }[],
  onVoucher: () => void = () => undefined,
): Promise<ReplayResult> {
  ctx.audited.arguments = {};
  const total: ReplayResult = { vouchers: 0, events: 0, references: 0, otherEvents: 0 };
  const wanted = Map.groupBy(items, ({ voucherId }) => voucherId);
  for (const [voucherId, ofVoucher] of wanted) {
    const entity: Entity = { type: "VoucherInstance", id: voucherId };
    let others = 0;
    const choose: Choose = (events) => {
      const listed = events.filter(({ sequence }) => ofVoucher.some(({ sequences }) => sequences.includes(sequence)));
      const wanted = listed.filter(({ sequence, occurredAt }) =>
        ofVoucher.some(({ sequences, erasedAt }) => sequences.includes(sequence) && occurredAt <= erasedAt),
      );
      others = listed.length - wanted.length;
      return wanted;
    };
    const upTo = new Date(Math.max(...ofVoucher.map(({ erasedAt }) => erasedAt.getTime())));
    const person = { by: "voucher", voucherId } as const;
    const eraseAll = async (voucherIds: readonly string[], lock: Lock) => {
      const work: Work = { voucherIds, lock, person, reason: null, upTo, choose };
      const portion = await eraseAudited(ctx, entity, (tx) => eraseLocked(ctx, tx, work));
      addCounts(total, { ...portion, damaged: portion.damaged.length });
      return portion.locked;
    };
    await lockBusyLast(ctx, [[voucherId]], eraseAll, awaitFreeTexts(ctx));
    total.otherEvents += others;
    onVoucher();
  }
  return total;
}

/** Waits until each text of a voucher has been free, in a transaction that locks nothing else. */
const awaitFreeTexts = (ctx: AuditContext) => async (voucherId: string) => {
  for (const { kind, text } of await selectTexts(ctx.pool, [voucherId])) {
    await inTransaction(ctx.pool, async (tx) => {
      await waitForLocks(tx, lockWaitOf(ctx));
      await waitForText(tx, { kind, text });
    });
  }
};

const NOTHING: ErasedPortion = {
  vouchers: 0,
  events: 0,
  references: 0,
  damaged: [],
  erased: [],
  locked: new Set(),
};

/** Adds the counts of a part of a run. */
export function addCounts(total: ErasureResult, { vouchers, events, references, damaged = 0 }: ErasureResult): void {
  total.vouchers += vouchers;
  total.events += events;
  total.references += references;
  if (damaged > 0) total.damaged = (total.damaged ?? 0) + damaged;
}

function eraseAudited(
  ctx: AuditContext,
  entity: Entity,
  erase: (tx: Transaction) => Promise<ErasedPortion>,
): Promise<ErasedPortion> {
  const eraseUnlessOutdated = async (tx: Transaction) => {
    await assertUpgraded(tx);
    return erase(tx);
  };
  const run = () =>
    withAuditEntry(ctx, entity, eraseUnlessOutdated, {
      before: { vouchers: 0, events: 0, references: 0, erased: [] },
      after: ({ vouchers, events, references, erased }) => ({ vouchers, events, references, erased }),
    });
  // An erasure of a user or a reference waits for its lock, and a claim locks several users, so deadlocks can occur.
  return retryConflicts(run);
}

/** The entity that the audit entry names. A user is named by the replaced text. */
async function entityOf(ctx: Pick<AuditContext, "pool">, person: ErasedPerson): Promise<Entity> {
  if (person.by === "voucher") return { type: "VoucherInstance", id: person.voucherId };
  const [owner, plain] = person.by === "user" ? ["", person.userId] : [person.organizationId, person.externalRef];
  const form = await findErasedForm(ctx.pool, { owner, text: plain });
  if (form === null) throw new AppError("not_found", `There is no organization ${owner}.`);
  if (person.by === "reference") return { type: "Organization", id: person.organizationId };
  if (form === plain) throw new AppError("invalid_request", "This user is erased already.");
  return { type: "User", id: form };
}

/** Chooses events to erase. */
type Choose = (events: ErasableEvent[]) => ErasableEvent[];

/** The work of one transaction, for the vouchers that it can lock. */
interface Work {
  voucherIds: readonly string[];
  lock: Lock;
  person: ErasedPerson;
  reason: string | null;
  /** What was written after this time stays. */
  upTo: Date | null;
  choose?: Choose;
}

/** Locks vouchers and their texts, seals one erasing event in each chain, and erases the events that it names. */
async function eraseLocked(
  { randomBytes }: Pick<AuditContext, "randomBytes">,
  tx: Transaction,
  { voucherIds: wanted, lock, person, reason, upTo, choose = (events) => events }: Work,
): Promise<ErasedPortion> {
  await usePlansOfService(tx);
  const locked = await lockFreeTexts(tx, await lock(tx, wanted));
  if (locked.size === 0) return NOTHING;
  const voucherIds = [...locked];
  const { now, vouchers } = await readLockedVouchers(tx, voucherIds);
  const damaged = await findDamaged(tx, voucherIds);
  for (const id of damaged) vouchers.delete(id);
  const erasable = await selectErasableEvents(tx, {
    voucherId: [...vouchers.keys()],
    eventTypes: TYPES[person.by],
    userId: person.by === "user" ? person.userId : null,
  });
  const chosen = choose(erasable).filter(({ occurredAt }) => upTo === null || occurredAt <= upTo);
  const byVoucher = Map.groupBy(chosen, ({ voucherId }) => voucherId);
  const chains = [...vouchers.values()].filter(({ id }) => byVoucher.has(id));
  const events = chains.map((voucher) =>
    nextEvent(randomBytes, voucher, "voucher.instance.erased", now, {
      erasedSequences: byVoucher.get(voucher.id)?.map(({ sequence }) => sequence),
      reason: reason ?? undefined,
    }),
  );
  if (chains.length > 0) {
    const appended = appendEvents(await openSinks(tx), chains, await readPending(tx, chains), events);
    await write(tx, [...appended.writes, ...advanceChains(appended.advances)]);
  }
  const erasing = new Map(events.map(({ voucherId, sequence }) => [voucherId, sequence]));
  const found = [...vouchers.keys()].map((voucherId) => ({ voucherId, sequence: erasing.get(voucherId) ?? null }));
  const { texts, ...counts } = await eraseEvents(tx, found, upTo);
  return {
    ...counts,
    damaged,
    locked,
    references: texts,
    erased: chains.map(({ id }) => ({
      voucherId: id,
      sequences: byVoucher.get(id)?.map(({ sequence }) => sequence) ?? [],
    })),
  };
}
