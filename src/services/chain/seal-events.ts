import type pg from "pg";
import { insertSealedEvents, type SealedEvent, selectPendingEvents, writeSeals } from "../../db/events.ts";
import { type LogBatch, openLogBatch } from "../../db/log-batches.ts";
import type { Transaction } from "../../db/pool.ts";
import type { PreparedStatements } from "../../db/statements.ts";
import { type Decided, readThenWrite, waitForLocks } from "../../db/transaction.ts";
import { advanceChains, type ChainAdvance, lockVoucher, readChainHeads } from "../../db/vouchers.ts";
import { type ChainHead, type EventContent, GENESIS_HASH, sealEvent } from "../../domain/chain.ts";

/** A chain whose voucher the current transaction has locked. */
interface LockedChain extends ChainHead {
  id: string;
}

/** Heads of locked chains by voucher id. They advance as events are sealed. */
type ChainHeads = Map<string, ChainHead>;

/** Returns the heads of locked chains as they were read. */
export function headsOf(chains: readonly LockedChain[]): ChainHeads {
  return new Map(
    chains.map(({ id, lastSequence, sealedSequence, sealedHash }) => [
      id,
      { lastSequence, sealedSequence, sealedHash },
    ]),
  );
}

/** Reads the Pending events of locked chains in order of voucher and sequence. Makes no query when there are none. */
export async function readPending(tx: Transaction, chains: readonly LockedChain[]): Promise<EventContent[]> {
  const unsealed = chains.filter((chain) => chain.sealedSequence < chain.lastSequence).map((chain) => chain.id);
  return unsealed.length === 0 ? [] : selectPendingEvents(tx, unsealed);
}

/**
 * Statements that seal Pending events of locked vouchers, in chain order; advances `heads` and `batch`. The caller must write both to the
 * database.
 */
export function sealPending(heads: ChainHeads, batch: LogBatch, pending: readonly EventContent[]): PreparedStatements {
  return writeSeals(pending.map((event) => sealNext(heads, batch, event)));
}

/**
 * Statements that append one sealed event to each locked chain that has no Pending events; advances `heads` and `batch`. The caller must
 * write both to the database.
 */
export function appendSealed(heads: ChainHeads, batch: LogBatch, events: readonly EventContent[]): PreparedStatements {
  const sealed = events.map((event) => {
    const head = selectHead(heads, event.voucherId);
    heads.set(event.voucherId, { ...head, lastSequence: head.lastSequence + 1 });
    return sealNext(heads, batch, event);
  });
  return insertSealedEvents(sealed);
}

/** Returns how far `heads` has advanced since the chains were read. */
export function advancesOf(chains: readonly LockedChain[], heads: ChainHeads): ChainAdvance[] {
  return chains.map((chain) => ({
    voucherId: chain.id,
    lastSequenceBefore: chain.lastSequence,
    after: selectHead(heads, chain.id),
  }));
}

function sealNext(heads: ChainHeads, batch: LogBatch, event: EventContent): SealedEvent {
  const head = selectHead(heads, event.voucherId);
  if (event.sequence !== head.sealedSequence + 1) {
    throw new Error(
      `cannot seal event ${event.sequence} of ${event.voucherId}: event ${head.sealedSequence} is the last sealed one`,
    );
  }
  const seal = sealEvent(event, head.sealedHash ?? GENESIS_HASH);
  if (event.eventType !== "voucher.instance.issued") batch.announce(event);
  heads.set(event.voucherId, { ...head, sealedSequence: event.sequence, sealedHash: seal.recordHash });
  return { event, seal, logSlot: batch.add(seal.recordHash) };
}

function selectHead(heads: ChainHeads, voucherId: string): ChainHead {
  const head = heads.get(voucherId);
  if (head === undefined) throw new Error(`the chain of ${voucherId} is not locked`);
  return head;
}

/** Heads of the chains that were read, and their Pending events in chain order. Some chains may have no Pending events. */
export interface UnsealedChains {
  chains: readonly LockedChain[];
  pending: readonly EventContent[];
  /** The leaves that the transaction adds to the log. */
  batch: LogBatch;
}

/** Reads the heads and Pending events of chains. The caller must have sent the statement that locks their vouchers. */
export async function readUnsealed(tx: Transaction, voucherIds: readonly string[]): Promise<UnsealedChains> {
  const [chains, pending, batch] = await Promise.all([
    readChainHeads(tx, voucherIds),
    selectPendingEvents(tx, voucherIds),
    openLogBatch(tx),
  ]);
  return { chains, pending, batch };
}

/** Seals the Pending events of locked vouchers. Returns the number of sealed events per entry of `voucherIds`; 0 for repeated ids. */
export function sealChains(
  voucherIds: readonly string[],
  { chains, pending, batch }: UnsealedChains,
): Decided<number[]> {
  const byVoucher = Map.groupBy(pending, ({ voucherId }) => voucherId);
  const locked = chains.filter(({ id }) => voucherIds.includes(id) && byVoucher.has(id));
  const heads = headsOf(locked);
  const seals = sealPending(
    heads,
    batch,
    locked.flatMap(({ id }) => byVoucher.get(id) ?? []),
  );
  const result = voucherIds.map((voucherId) => {
    const sealed = byVoucher.get(voucherId)?.length ?? 0;
    byVoucher.delete(voucherId);
    return sealed;
  });
  return { result, writes: [...seals, ...advanceChains(advancesOf(locked, heads)), ...batch.writes()] };
}

/** Longest wait of {@link sealVoucher} for the voucher's row. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/** Seals the Pending events of one voucher. Returns how many: none if another transaction has sealed them first. */
export async function sealVoucher(ctx: { pool: pg.Pool }, voucherId: string): Promise<number> {
  const [sealed = 0] = await readThenWrite(
    ctx.pool,
    (tx) => Promise.all([waitForLocks(tx, LOCK_WAIT_MS), lockVoucher(tx, voucherId), readUnsealed(tx, [voucherId])]),
    async ([, , unsealed]) => sealChains([voucherId], unsealed),
  );
  return sealed;
}
