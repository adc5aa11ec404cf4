import { nextEvent } from "../core/chain/chain.ts";
import { findDamaged } from "../core/chain/db/broken-chains.ts";
import { appendEvents, openSinks, readPending } from "../core/chain/seal-events.ts";
import { advanceChains, readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { type Transaction, usePlansOfService } from "../platform/db/pool.ts";
import { inTransaction, retryConflicts, waitForLocks, write } from "../platform/db/transaction.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import type { Entity } from "./db/audit-entries.ts";
import {
  type ErasableEvent,
  eraseEvents,
  eraseReference,
  eraseUser,
  lockFreeTexts,
  selectTexts,
  waitForText,
} from "./db/erasures.ts";
import { type ErasedPerson, entityOf, findPortions, formsOfPerson, selectEvents } from "./find-person.ts";
import { type Lock, lockBusyLast } from "./lock-busy-last.ts";
import { type AuditContext, lockWaitOf, withAuditEntry } from "./with-audit-entry.ts";

/** The number of vouchers and events from which data was erased, and of texts that were replaced or removed. */
export interface ErasureResult {
  vouchers: number;
  events: number;
  references: number;
  /** The number of vouchers that were skipped, because their chains accept no further event. Absent for 0. */
  damaged?: number;
}

/** The result of a replay. */
export interface ReplayResult extends ErasureResult {
  /** The number of events in the list that were not erased, because another event now has the same sequence. */
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

/**
 * Erases what identifies a person from sealed events and from all tables. Each chain gets a sealed event that lists its
 * erased events. Each transaction erases data of at most 500 vouchers and has an audit entry. So a run can stop at any
 * point, and the next run erases the rest. A run that finds nothing returns zeros.
 * @param reason is sealed, so it must not identify a person.
 * @param onPortion receives the counts so far. If it throws, the run ends with that error.
 * @param upTo keeps what was written after this time. Null erases everything.
 * @throws AppError `invalid_request` for a text that was already replaced, `not_found` for an unknown organization,
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
  // The search may find a voucher twice.
  const damaged = new Set<string>();
  const add = (portion: ErasedPortion) => {
    for (const id of portion.damaged) damaged.add(id);
    addCounts(total, { ...portion, damaged: 0 });
    if (damaged.size > 0) total.damaged = damaged.size;
    onPortion({ ...total });
  };
  // The audit arguments contain only the kind of subject and the reason. The entry's entity identifies the subject.
  ctx.audited.arguments = { by: person.by, ...(reason !== null && { reason }) };
  const entity = await entityOf(ctx.pool, person);
  const eraseAll = async (voucherIds: readonly string[], lock: Lock) => {
    const work: Work = { voucherIds, lock, person, reason, upTo };
    const portion = await eraseAudited(ctx, entity, (tx) => eraseLocked(ctx, tx, work));
    add(portion);
    return portion.locked;
  };
  const eraseOther = async (erase: (tx: Transaction) => Promise<number>) =>
    add(await eraseAudited(ctx, entity, async (tx) => ({ ...NOTHING, references: await erase(tx) })));
  const eraseFound = (found: ErasedPerson) =>
    lockBusyLast(ctx, findPortions(ctx.pool, found, upTo), eraseAll, awaitFreeTexts(ctx));
  // Searches after the erasures that wait for other transactions, to find what these transactions wrote.
  for (const one of formsOfPerson(person)) {
    if (one.by === "reference") {
      const { organizationId, externalRef: reference } = one;
      await eraseOther((tx) => eraseReference(tx, { organizationId, reference, upTo }));
    } else if (one.by === "user") {
      await eraseFound(one);
      await eraseOther((tx) => eraseUser(tx, { userId: one.userId, upTo }));
    }
    await eraseFound(one);
  }
  return total;
}

/**
 * Erases the given events again, for example after a restore. Skips events that do not exist, are already erased or
 * contain no personal data. Keeps what was written after the erasure: another event with the same sequence, and the
 * reasons of reservations that were released later.
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

/** Waits until the locks of a voucher's references and user ids are free, each in a transaction without other locks. */
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
  // An erasure waits for the lock of a user or a reference, and a claim locks several users. So deadlocks can occur.
  return retryConflicts(run);
}

/** Chooses events to erase. */
type Choose = (events: ErasableEvent[]) => ErasableEvent[];

/** The work of one transaction, for the vouchers that it can lock. */
interface Work {
  voucherIds: readonly string[];
  lock: Lock;
  person: ErasedPerson;
  reason: string | null;
  /** What was written after this time is kept. */
  upTo: Date | null;
  choose?: Choose;
}

/** Locks vouchers with their references and users, appends an erasing event to each chain, and erases what it lists. */
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
  const erasable = await selectEvents(tx, person, [...vouchers.keys()]);
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
