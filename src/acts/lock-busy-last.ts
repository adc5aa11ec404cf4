import { lockFreeVouchers, lockVoucher } from "../core/voucher/db/vouchers.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { isLockTimeout, waitForLocks } from "../platform/db/transaction.ts";
import { type AuditContext, lockWaitOf } from "./with-audit-entry.ts";

/** Maximum number of vouchers in one transaction of the second round, for vouchers that were locked in the first. */
const BUSY_RANGE = 100;

/** How often a run without `endBy` waits for the same voucher before it gives up, if others lock it first each time. */
const WAITS_MAX = 20;

/** Locks vouchers. Returns the ids of those that it could lock. */
export type Lock = (tx: Transaction, voucherIds: readonly string[]) => Promise<Set<string>>;

type Waiting = Pick<AuditContext, "lockWaitMs" | "endBy">;

/**
 * Runs `work` on ranges of vouchers. Each range has its own transaction, which begins with the given lock. In the first
 * round, locks the free vouchers without waiting. In the second round, waits for the rest. So a locked voucher does not
 * delay calls on other vouchers. A run with `endBy` tries a locked voucher again until then. A run without it fails at
 * the first lock timeout, or when other transactions have been the first to lock a voucher twenty times.
 * @param work returns the ids of the vouchers that it locked.
 * @throws AppError `voucher_busy`.
 * @param awaitFree runs before a transaction of the second round. It waits until everything else that `work` locks for
 * a voucher is free. `work` then tries without waiting, and leaves out vouchers that are locked again. These are tried
 * again later.
 */
export async function lockBusyLast(
  ctx: Waiting,
  ranges: AsyncIterable<readonly string[]> | Iterable<readonly string[]>,
  work: (voucherIds: readonly string[], lock: Lock) => Promise<ReadonlySet<string>>,
  awaitFree: (voucherId: string) => Promise<void> = async () => undefined,
): Promise<void> {
  const isOver = () => ctx.endBy !== undefined && performance.now() >= ctx.endBy;
  const busy: string[] = [];
  for await (const voucherIds of ranges) {
    if (isOver()) return;
    const locked = await work(voucherIds, lockFreeVouchers);
    busy.push(...voucherIds.filter((id) => !locked.has(id)));
  }
  const waits = new Map<string, number>();
  while (busy.length > 0 && !isOver()) {
    const [first = "", ...others] = busy.splice(0, BUSY_RANGE);
    const lock: Lock = (tx, ids) => lockOneAndFree(ctx, tx, ids);
    const locked = await awaitFree(first)
      .then(() => work([first, ...others], lock))
      .catch((error: unknown) => {
        if (ctx.endBy === undefined || !isLockTimeout(error)) throw error;
        return new Set();
      });
    busy.push(...[...others, first].filter((id) => !locked.has(id)));
    const waited = (waits.get(first) ?? 0) + 1;
    if (ctx.endBy === undefined && !locked.has(first) && waited >= WAITS_MAX) throw new AppError("voucher_busy");
    waits.set(first, waited);
  }
}

/**
 * Waits for the lock of the first voucher without holding another lock, then locks the other free vouchers. So a run
 * waits for only one lock at a time, and holds no other voucher's lock meanwhile.
 */
async function lockOneAndFree(ctx: Waiting, tx: Transaction, voucherIds: readonly string[]): Promise<Set<string>> {
  const [first = "", ...others] = voucherIds;
  await waitForLocks(tx, lockWaitOf(ctx));
  await lockVoucher(tx, first);
  await waitForLocks(tx, lockWaitOf(ctx));
  return (await lockFreeVouchers(tx, others)).add(first);
}
