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

/**
 * Verifies the chain of one voucher.
 * @throws AppError `not_found`.
 */
export async function verifyOneChain(ctx: Pick<AdminContext, "pool">, voucherId: string): Promise<VerifyResult> {
  const result: VerifyResult = { vouchers: 0, events: 0, broken: [] };
  await onSnapshot(ctx, async (tx) => {
    const head = await findChainHead(tx, voucherId);
    if (head === null) throw new AppError("not_found", `There is no voucher ${voucherId}.`);
    await verifyPage(tx, [head], result);
  });
  return result;
}

/** Verifies every chain, page by page, in the memory of one page; writers go on meanwhile. */
export async function verifyAllChains(
  ctx: Pick<AdminContext, "pool">,
  onPage: (sofar: VerifyResult) => void = () => undefined,
): Promise<VerifyResult> {
  const total: VerifyResult = { vouchers: 0, events: 0, broken: [] };
  let after = "";
  for (;;) {
    const { result, last } = await verifyChainsBehind(ctx, after, PAGE);
    if (result.vouchers === 0) return total;
    total.vouchers += result.vouchers;
    total.events += result.events;
    total.broken.push(...result.broken);
    after = last;
    onPage(total);
  }
}

/** Verifies the chains of the next `limit` vouchers in id order, and tells which was the last. Keep `limit` in the thousands. */
export async function verifyChainsBehind(
  ctx: Pick<AdminContext, "pool">,
  voucherId: string,
  limit: number,
): Promise<{ result: VerifyResult; last: string }> {
  const result: VerifyResult = { vouchers: 0, events: 0, broken: [] };
  return onSnapshot(ctx, async (tx) => {
    const heads = await selectChainHeadsAfter(tx, voucherId, limit);
    if (heads.length > 0) await verifyPage(tx, heads, result);
    return { result, last: heads.at(-1)?.voucherId ?? voucherId };
  });
}

/** Heads and events of one page must be of the same moment. */
function onSnapshot<T>(ctx: Pick<AdminContext, "pool">, work: (tx: Transaction) => Promise<T>): Promise<T> {
  return inTransaction(ctx.pool, async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
    return work(tx);
  });
}

async function verifyPage(
  tx: Transaction,
  heads: readonly (ChainHead & { voucherId: string })[],
  result: VerifyResult,
): Promise<void> {
  const first = heads[0]?.voucherId ?? "";
  const last = heads.at(-1)?.voucherId ?? "";
  const chains = new Map<string, StoredEvent[]>();
  for (const event of await selectEventsOfRange(tx, first, last)) {
    const chain = chains.get(event.voucherId);
    if (chain === undefined) chains.set(event.voucherId, [event]);
    else chain.push(event);
    result.events += 1;
  }
  for (const head of heads) {
    const problem = verifyChain(head.voucherId, head, chains.get(head.voucherId) ?? []);
    if (problem !== null) result.broken.push({ voucherId: head.voucherId, ...problem });
    result.vouchers += 1;
  }
}
