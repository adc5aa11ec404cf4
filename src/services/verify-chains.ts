import type { AdminContext } from "../admin-context.ts";
import { selectEventsOfRange, selectEventsPage } from "../db/events.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction } from "../db/transaction.ts";
import { findChainHead, findLastOfNext, selectChainHeadsOfRange } from "../db/vouchers.ts";
import { type ChainHead, type StoredEvent, verifyChain } from "../domain/chain.ts";
import { AppError } from "../domain/errors.ts";

/** Vouchers verified from one snapshot; a few megabytes of payloads. */
const RANGE = 2_000;
/** Ranges under way in one thread: Postgres reads one while another is verified. */
export const RANGES_PER_THREAD = 2;

/** A limit that no chain reaches: the largest int. */
const ALL_EVENTS = 2 ** 31 - 1;

export interface BrokenChain {
  voucherId: string;
  sequence: number;
  problem: string;
}

export interface VerifyResult {
  vouchers: number;
  events: number;
  broken: BrokenChain[];
}

/** Vouchers in id order: those behind one, up to another. */
export interface ChainRange {
  afterId: string;
  lastId: string;
}

/** What verifies ranges, here or in other threads. */
export interface ChainVerifier {
  verify(range: ChainRange): Promise<VerifyResult>;
  /** Ranges to give it at once. */
  atOnce: number;
}

/** Chains as they were at one moment: heads, and all events of their vouchers in chain order. */
interface Snapshot {
  heads: (ChainHead & { voucherId: string })[];
  events: StoredEvent[];
}

/**
 * Verifies the chain of one voucher.
 * @throws AppError `not_found`.
 */
export async function verifyOneChain(ctx: Pick<AdminContext, "pool">, voucherId: string): Promise<VerifyResult> {
  const snapshot = await onSnapshot(ctx, async (tx): Promise<Snapshot> => {
    const head = await findChainHead(tx, voucherId);
    if (head === null) throw new AppError("not_found", `There is no voucher ${voucherId}.`);
    return { heads: [head], events: await selectEventsPage(tx, voucherId, 0, ALL_EVENTS) };
  });
  return verifySnapshot(snapshot);
}

/**
 * Verifies every chain, range by range, in the memory of the ranges that are under way; writers go on meanwhile.
 * @param onRange what was verified so far. What it throws ends the verification.
 */
export async function verifyAllChains(
  ctx: Pick<AdminContext, "pool">,
  onRange: (sofar: VerifyResult) => void = () => undefined,
  verifier: ChainVerifier = { verify: (range) => verifyRange(ctx, range), atOnce: RANGES_PER_THREAD },
): Promise<VerifyResult> {
  const total: VerifyResult = { vouchers: 0, events: 0, broken: [] };
  const ranges = allRanges(ctx);
  const verifyOneByOne = async () => {
    // Whoever is free takes the next. One that fails ends the ranges for all.
    for await (const range of ranges) {
      const result = await verifier.verify(range);
      total.vouchers += result.vouchers;
      total.events += result.events;
      total.broken.push(...result.broken);
      onRange(total);
    }
  };
  await Promise.all(Array.from({ length: verifier.atOnce }, verifyOneByOne));
  total.broken.sort((a, b) => (a.voucherId < b.voucherId ? -1 : 1));
  return total;
}

/** Verifies the chains of the next `limit` vouchers in id order, and tells which was the last. Keep `limit` in the thousands. */
export async function verifyChainsBehind(
  ctx: Pick<AdminContext, "pool">,
  afterId: string,
  limit: number,
): Promise<{ result: VerifyResult; last: string }> {
  const lastId = await findLastOfNext(ctx.pool, afterId, limit);
  if (lastId === null) return { result: { vouchers: 0, events: 0, broken: [] }, last: afterId };
  return { result: await verifyRange(ctx, { afterId, lastId }), last: lastId };
}

/** Verifies the chains of a range as they are at one moment. */
export async function verifyRange(
  ctx: Pick<AdminContext, "pool">,
  { afterId, lastId }: ChainRange,
): Promise<VerifyResult> {
  const snapshot = await onSnapshot(ctx, async (tx) => ({
    heads: await selectChainHeadsOfRange(tx, afterId, lastId),
    events: await selectEventsOfRange(tx, afterId, lastId),
  }));
  return verifySnapshot(snapshot);
}

async function* allRanges(ctx: Pick<AdminContext, "pool">): AsyncGenerator<ChainRange, void, void> {
  for (let afterId = ""; ; ) {
    const lastId = await findLastOfNext(ctx.pool, afterId, RANGE);
    if (lastId === null) return;
    yield { afterId, lastId };
    afterId = lastId;
  }
}

/** Heads and events must be of the same moment. */
function onSnapshot<T>(ctx: Pick<AdminContext, "pool">, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(ctx.pool, async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return work(tx);
  });
}

function verifySnapshot({ heads, events }: Snapshot): VerifyResult {
  const chains = new Map<string, StoredEvent[]>();
  for (const event of events) {
    const chain = chains.get(event.voucherId);
    if (chain === undefined) chains.set(event.voucherId, [event]);
    else chain.push(event);
  }
  const broken = heads.flatMap((head): BrokenChain[] => {
    const problem = verifyChain(head.voucherId, head, chains.get(head.voucherId) ?? []);
    return problem === null ? [] : [{ voucherId: head.voucherId, ...problem }];
  });
  return { vouchers: heads.length, events: events.length, broken };
}
