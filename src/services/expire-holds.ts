import type { WorkerContext } from "../context.ts";
import { type EndedHold, endHolds, FIRST_HOLD, type HoldPosition, selectOverdueHolds } from "../db/reservations.ts";
import { lookThenWrite } from "../db/transaction.ts";
import { lockFreeVouchers, readLockedVouchers } from "../db/vouchers.ts";
import { liveHold } from "../domain/hold.ts";
import { giveLeaseBack } from "./reserve-voucher.ts";

/** Holds ended in one transaction. */
const BATCH_MAX = 500;

/**
 * Records the end of holds whose time is over, and gives back leases that are still theirs. Passes over vouchers that somebody
 * else has locked: whoever moves them records it, or the next pass does. Nothing reads this: a hold past its time is none.
 * @returns how many ends were recorded.
 */
export async function expireHolds(
  ctx: Pick<WorkerContext, "pool" | "leases" | "log">,
  untilMs: number,
): Promise<number> {
  let count = 0;
  let after: HoldPosition = FIRST_HOLD;
  do {
    const overdue = await selectOverdueHolds(ctx.pool, after, BATCH_MAX);
    const last = overdue.at(-1);
    if (last === undefined) return count;
    after = last;
    const expired = await endOverdue(ctx, [...new Set(overdue.map((hold) => hold.voucherId))]);
    await Promise.all(expired.map(({ voucherId, ticket }) => giveLeaseBack(ctx, voucherId, ticket)));
    count += expired.length;
  } while (performance.now() < untilMs);
  return count;
}

function endOverdue(
  ctx: Pick<WorkerContext, "pool">,
  voucherIds: readonly string[],
): Promise<(EndedHold & { voucherId: string })[]> {
  return lookThenWrite(
    ctx.pool,
    (tx) => Promise.all([lockFreeVouchers(tx, voucherIds), readLockedVouchers(tx, voucherIds)]),
    async ([locked, { now, vouchers }]) => {
      const expired = [...vouchers.values()].flatMap(({ id, hold }) =>
        locked.has(id) && hold !== null && liveHold(hold, now) === null
          ? [{ voucherId: id, ticket: hold.ticket, state: "Expired" as const }]
          : [],
      );
      return { result: expired, writes: endHolds(expired, now) };
    },
  );
}
