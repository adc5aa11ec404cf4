import type { Transaction } from "../../platform/db/pool.ts";
import type { PreparedStatements } from "../../platform/db/statements.ts";
import type { Decided } from "../../platform/db/transaction.ts";
import { advanceChains, type ChainAdvance, readChainHeads } from "../voucher/db/vouchers.ts";
import type { ChainHead } from "../voucher/voucher.ts";
import { type EventContent, type EventType, GENESIS_HASH, sealEvent } from "./chain.ts";
import {
  addLeaf,
  appendLeaves,
  insertSealedEvents,
  type LeafBatch,
  openLeafBatch,
  type SealedEvent,
  selectPendingEvents,
  writeSeals,
} from "./db/events.ts";
import { announceEvents, hasEnabledTargets } from "./db/outbox.ts";

/** Types that no webhook endpoint gets: vouchers are issued in large numbers, and an erasure changes no status. */
export const UNANNOUNCED: readonly EventType[] = ["voucher.instance.issued", "voucher.instance.erased"];

/** A chain whose voucher the current transaction has locked. */
interface LockedChain extends ChainHead {
  id: string;
}

/** Reads the Pending events of locked chains in order of voucher and sequence. Makes no query if there are none. */
export async function readPending(tx: Transaction, chains: readonly LockedChain[]): Promise<EventContent[]> {
  const unsealed = chains.filter((chain) => chain.sealedSequence < chain.lastSequence).map((chain) => chain.id);
  return unsealed.length === 0 ? [] : selectPendingEvents(tx, unsealed);
}

/** What a transaction writes besides the chains: a leaf batch for the log, and the outbox if an endpoint is enabled. */
export interface EventSinks {
  leaves: LeafBatch;
  hasTargets: boolean;
}

/** Opens the {@link EventSinks} of a transaction. Call it only after sending the statement that locks the vouchers. */
export async function openSinks(tx: Transaction): Promise<EventSinks> {
  const [leaves, hasTargets] = await Promise.all([openLeafBatch(tx), hasEnabledTargets(tx)]);
  return { leaves, hasTargets };
}

/** What a transaction writes for its sealed events. */
interface Appended {
  /** Statements that write the events, their leaves and their rows in the outbox. */
  writes: PreparedStatements;
  /** The new heads of the chains. The caller must write them to the vouchers. */
  advances: ChainAdvance[];
  /** Whether events were written to the outbox for webhook endpoints. */
  announces: boolean;
}

/**
 * Seals the Pending events of locked chains, in order. Then seals and appends the given events, one per chain at most.
 */
export function appendEvents(
  { leaves, hasTargets }: EventSinks,
  chains: readonly LockedChain[],
  pending: readonly EventContent[],
  events: readonly EventContent[] = [],
): Appended {
  const heads = new Map(chains.map((chain): [string, ChainHead] => [chain.id, chain]));
  const headOf = (voucherId: string): ChainHead => {
    const head = heads.get(voucherId);
    if (head === undefined) throw new Error(`the chain of ${voucherId} is not locked`);
    return head;
  };
  const seal = (event: EventContent): SealedEvent => {
    const { voucherId, sequence } = event;
    const { lastSequence, sealedSequence, sealedHash } = headOf(voucherId);
    if (sequence !== sealedSequence + 1) {
      throw new Error(`cannot seal event ${sequence} of ${voucherId}: event ${sealedSequence} is the last sealed one`);
    }
    const sealed = sealEvent(event, sealedHash ?? GENESIS_HASH);
    const { recordHash } = sealed;
    heads.set(voucherId, {
      lastSequence: Math.max(lastSequence, sequence),
      sealedSequence: sequence,
      sealedHash: recordHash,
    });
    return { event, seal: sealed, logSlot: addLeaf(leaves, recordHash) };
  };
  const seals = pending.map(seal);
  const appended = events.map(seal);
  const announced = [...pending, ...events].filter(({ eventType }) => hasTargets && !UNANNOUNCED.includes(eventType));
  return {
    writes: [
      ...writeSeals(seals),
      ...insertSealedEvents(appended),
      ...appendLeaves(leaves),
      ...announceEvents(announced),
    ],
    advances: chains.map(({ id, lastSequence }) => ({
      voucherId: id,
      lastSequenceBefore: lastSequence,
      after: headOf(id),
    })),
    announces: announced.length > 0,
  };
}

/** Heads of chains, and the Pending events of these chains in chain order. A chain may have none. */
interface ChainsToSeal {
  chains: readonly LockedChain[];
  pending: readonly EventContent[];
  sinks: EventSinks;
}

/** Reads the heads and Pending events of chains. Call it only after sending the statement that locks the vouchers. */
export async function readChainsToSeal(tx: Transaction, voucherIds: readonly string[]): Promise<ChainsToSeal> {
  const [chains, pending, sinks] = await Promise.all([
    readChainHeads(tx, voucherIds),
    selectPendingEvents(tx, voucherIds),
    openSinks(tx),
  ]);
  return { chains, pending, sinks };
}

/** Seals the Pending events of locked vouchers. Returns the number of sealed events per id, and 0 for a repeated id. */
export function sealChains(
  voucherIds: readonly string[],
  { chains, pending, sinks }: ChainsToSeal,
  onAnnounced?: () => void,
): Decided<number[]> {
  const byVoucher = Map.groupBy(pending, ({ voucherId }) => voucherId);
  const locked = chains.filter(({ id }) => voucherIds.includes(id) && byVoucher.has(id));
  const { writes, advances, announces } = appendEvents(
    sinks,
    locked,
    locked.flatMap(({ id }) => byVoucher.get(id) ?? []),
  );
  const result = voucherIds.map((voucherId) => {
    const sealed = byVoucher.get(voucherId)?.length ?? 0;
    byVoucher.delete(voucherId);
    return sealed;
  });
  return { result, writes: [...writes, ...advanceChains(advances)], afterCommit: announces ? onAnnounced : undefined };
}
