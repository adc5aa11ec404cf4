import type { AdminContext } from "../admin-context.ts";
import { insertSealedEvents, type SealedEvent, selectPendingEvents, writeSeals } from "../db/events.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction, waitForLocks } from "../db/transaction.ts";
import { advanceChains, lockVoucher, readLockedVouchers } from "../db/vouchers.ts";
import { type ChainHead, type EventContent, GENESIS_HASH, sealEvent } from "../domain/chain.ts";

/** A chain whose voucher this transaction has locked. */
export interface LockedChain extends ChainHead {
  id: string;
}

/**
 * Seals the Pending events of locked vouchers in chain order and returns the heads as they are then, by voucher id. Writes the
 * events only: the caller writes the heads, together with whatever else it does to the vouchers.
 */
export async function sealPending(tx: Transaction, chains: readonly LockedChain[]): Promise<Map<string, ChainHead>> {
  const heads = new Map<string, ChainHead>(
    chains.map(({ id, lastSequence, sealedSequence, sealedHash }) => [
      id,
      { lastSequence, sealedSequence, sealedHash },
    ]),
  );
  const behind = chains.filter((chain) => chain.sealedSequence < chain.lastSequence).map((chain) => chain.id);
  if (behind.length === 0) return heads;
  const sealed: SealedEvent[] = [];
  for (const event of await selectPendingEvents(tx, behind)) sealed.push(sealNext(heads, event));
  await writeSeals(tx, sealed);
  return heads;
}

/** Appends one sealed event to each of several locked, completely sealed chains, and moves `heads` accordingly. */
export async function appendSealed(
  tx: Transaction,
  heads: Map<string, ChainHead>,
  events: readonly EventContent[],
): Promise<void> {
  const sealed = events.map((event) => {
    const head = selectHead(heads, event.voucherId);
    heads.set(event.voucherId, { ...head, lastSequence: head.lastSequence + 1 });
    return sealNext(heads, event);
  });
  await insertSealedEvents(tx, sealed);
}

function sealNext(heads: Map<string, ChainHead>, event: EventContent): SealedEvent {
  const head = selectHead(heads, event.voucherId);
  if (event.sequence !== head.sealedSequence + 1) {
    throw new Error(
      `event ${event.sequence} of ${event.voucherId} cannot be sealed behind event ${head.sealedSequence}`,
    );
  }
  const seal = sealEvent(event, head.sealedHash ?? GENESIS_HASH);
  heads.set(event.voucherId, { ...head, sealedSequence: event.sequence, sealedHash: seal.recordHash });
  return { event, seal };
}

function selectHead(heads: Map<string, ChainHead>, voucherId: string): ChainHead {
  const head = heads.get(voucherId);
  if (head === undefined) throw new Error(`the chain of ${voucherId} is not locked`);
  return head;
}

/** Longest wait for a voucher's row before a seal job fails; whoever holds the row seals, too. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/** Seals the Pending events of one voucher; returns how many. None when another sealer was first. */
export async function sealVoucher(ctx: Pick<AdminContext, "pool">, voucherId: string): Promise<number> {
  return inTransaction(ctx.pool, async (tx) => {
    await waitForLocks(tx, LOCK_WAIT_MS);
    if (!(await lockVoucher(tx, voucherId))) return 0;
    const { vouchers } = await readLockedVouchers(tx, [voucherId]);
    const before = vouchers.get(voucherId);
    if (before === undefined) throw new Error(`the locked voucher ${voucherId} could not be read`);
    const after = (await sealPending(tx, [before])).get(voucherId) as ChainHead;
    const sealed = after.sealedSequence - before.sealedSequence;
    if (sealed > 0) await advanceChains(tx, [{ voucherId, lastSequenceBefore: before.lastSequence, after }]);
    return sealed;
  });
}
