import type { AdminContext } from "../admin-context.ts";
import { insertSealedEvents, type SealedEvent, selectPendingEvents, writeSeals } from "../db/events.ts";
import type { Transaction } from "../db/pool.ts";
import type { Writes } from "../db/statements.ts";
import { lookThenWrite, waitForLocks } from "../db/transaction.ts";
import { advanceChains, type ChainAdvance, findChainHead, lockVoucher } from "../db/vouchers.ts";
import { type ChainHead, type EventContent, GENESIS_HASH, sealEvent } from "../domain/chain.ts";

/** A chain whose voucher this transaction has locked. */
export interface LockedChain extends ChainHead {
  id: string;
}

/** The heads of several locked chains, by voucher id; they move while events are sealed behind them. */
export type ChainHeads = Map<string, ChainHead>;

/** Chain heads as they were read. */
export function headsOf(chains: readonly LockedChain[]): ChainHeads {
  return new Map(
    chains.map(({ id, lastSequence, sealedSequence, sealedHash }) => [
      id,
      { lastSequence, sealedSequence, sealedHash },
    ]),
  );
}

/** The events of locked chains that wait for their seal, by voucher and sequence. Asks the database only where there are some. */
export async function selectUnsealed(tx: Transaction, chains: readonly LockedChain[]): Promise<EventContent[]> {
  const behind = chains.filter((chain) => chain.sealedSequence < chain.lastSequence).map((chain) => chain.id);
  return behind.length === 0 ? [] : selectPendingEvents(tx, behind);
}

/**
 * Writes that seal the Pending events of locked vouchers, given in chain order; moves `heads` accordingly. They are of the events only: the
 * caller writes the heads, together with whatever else it does to the vouchers.
 */
export function sealPending(heads: ChainHeads, pending: readonly EventContent[]): Writes {
  return writeSeals(pending.map((event) => sealNext(heads, event)));
}

/** Writes that append one sealed event to each of several locked, completely sealed chains; moves `heads` accordingly. */
export function appendSealed(heads: ChainHeads, events: readonly EventContent[]): Writes {
  const sealed = events.map((event) => {
    const head = selectHead(heads, event.voucherId);
    heads.set(event.voucherId, { ...head, lastSequence: head.lastSequence + 1 });
    return sealNext(heads, event);
  });
  return insertSealedEvents(sealed);
}

/** Where the heads of these chains went since they were read. */
export function movesOf(chains: readonly LockedChain[], heads: ChainHeads): ChainAdvance[] {
  return chains.map((chain) => ({
    voucherId: chain.id,
    lastSequenceBefore: chain.lastSequence,
    after: selectHead(heads, chain.id),
  }));
}

function sealNext(heads: ChainHeads, event: EventContent): SealedEvent {
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

function selectHead(heads: ChainHeads, voucherId: string): ChainHead {
  const head = heads.get(voucherId);
  if (head === undefined) throw new Error(`the chain of ${voucherId} is not locked`);
  return head;
}

/** Longest wait for a voucher's row before a seal job fails; whoever holds the row seals, too. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/** Seals the Pending events of one voucher; returns how many. None when another sealer was first. */
export async function sealVoucher(ctx: Pick<AdminContext, "pool">, voucherId: string): Promise<number> {
  return lookThenWrite(
    ctx.pool,
    (tx) =>
      Promise.all([
        waitForLocks(tx, LOCK_WAIT_MS),
        lockVoucher(tx, voucherId),
        findChainHead(tx, voucherId),
        selectPendingEvents(tx, [voucherId]),
      ]),
    async ([, , before, pending]) => {
      if (before === null || pending.length === 0) return { result: 0, writes: [] };
      const chain = { id: voucherId, ...before };
      const heads = headsOf([chain]);
      const seals = sealPending(heads, pending);
      return { result: pending.length, writes: [...seals, ...advanceChains(movesOf([chain], heads))] };
    },
  );
}
