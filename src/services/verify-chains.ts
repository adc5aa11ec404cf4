import type { AdminContext } from "../admin-context.ts";
import { selectEventsOfRange } from "../db/events.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction } from "../db/transaction.ts";
import { findChainHead, selectChainHeadsAfter } from "../db/vouchers.ts";
import { type ChainHead, type StoredEvent, verifyChain } from "../domain/chain.ts";
import { AppError } from "../domain/errors.ts";

/** Vouchers verified from one snapshot; a few megabytes of payloads. */
const PAGE = 2_000;

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

/** Chains as they were at one moment: heads in id order, and all events of their vouchers in chain order. */
interface Page {
  heads: (ChainHead & { voucherId: string })[];
  events: StoredEvent[];
}

/**
 * Verifies the chain of one voucher.
 * @throws AppError `not_found`.
 */
export async function verifyOneChain(ctx: Pick<AdminContext, "pool">, voucherId: string): Promise<VerifyResult> {
  const page = await onSnapshot(ctx, async (tx): Promise<Page> => {
    const head = await findChainHead(tx, voucherId);
    if (head === null) throw new AppError("not_found", `There is no voucher ${voucherId}.`);
    return { heads: [head], events: await selectEventsOfRange(tx, voucherId, voucherId) };
  });
  return verifyPage(page);
}

/** Verifies every chain, page by page, in the memory of two pages; writers go on meanwhile. */
export async function verifyAllChains(
  ctx: Pick<AdminContext, "pool">,
  onPage: (sofar: VerifyResult) => void = () => undefined,
): Promise<VerifyResult> {
  const total: VerifyResult = { vouchers: 0, events: 0, broken: [] };
  let page = await readPage(ctx, "", PAGE);
  for (;;) {
    const last = page.heads.at(-1);
    if (last === undefined) return total;
    // Postgres reads the next page while this one is verified.
    const next = readPage(ctx, last.voucherId, PAGE);
    const result = verifyPage(page);
    total.vouchers += result.vouchers;
    total.events += result.events;
    total.broken.push(...result.broken);
    onPage(total);
    page = await next;
  }
}

/** Verifies the chains of the next `limit` vouchers in id order, and tells which was the last. Keep `limit` in the thousands. */
export async function verifyChainsBehind(
  ctx: Pick<AdminContext, "pool">,
  voucherId: string,
  limit: number,
): Promise<{ result: VerifyResult; last: string }> {
  const page = await readPage(ctx, voucherId, limit);
  return { result: verifyPage(page), last: page.heads.at(-1)?.voucherId ?? voucherId };
}

function readPage(ctx: Pick<AdminContext, "pool">, afterId: string, limit: number): Promise<Page> {
  return onSnapshot(ctx, async (tx) => {
    const heads = await selectChainHeadsAfter(tx, afterId, limit);
    const [first, last] = [heads[0], heads.at(-1)];
    if (first === undefined || last === undefined) return { heads, events: [] };
    return { heads, events: await selectEventsOfRange(tx, first.voucherId, last.voucherId) };
  });
}

/** Heads and events of one page must be of the same moment. */
function onSnapshot<T>(ctx: Pick<AdminContext, "pool">, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(ctx.pool, async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return work(tx);
  });
}

function verifyPage({ heads, events }: Page): VerifyResult {
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
