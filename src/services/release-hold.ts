import type { ApiContext } from "../context.ts";
import type { Transaction } from "../db/pool.ts";
import { endHolds, findHoldVoucher } from "../db/reservations.ts";
import { inTransaction, isLockTimeout } from "../db/transaction.ts";
import { lockVoucher, readLockedVouchers } from "../db/vouchers.ts";
import { AppError } from "../domain/errors.ts";
import { liveHold } from "../domain/hold.ts";
import { isTicket } from "../domain/ids.ts";
import type { Caller } from "./caller.ts";
import { giveLeaseBack } from "./reserve-voucher.ts";

/** The answer to release. Nothing to release is not an error, and no answer tells a foreign ticket from an unknown one. */
export type ReleaseResult = { released: true } | { released: false; reason: string };

const NOTHING_LIVE: ReleaseResult = {
  released: false,
  reason: "This ticket holds no voucher any more, or never did. Nothing needs to be released.",
};

/** How long a release waits for a voucher's row that something else has locked. Milliseconds. */
const LOCK_WAIT_MS = 3_000;

/**
 * Gives a hold back unspent. Whoever of the organization has the ticket may do it. Needs Postgres alone: a lease that cannot be
 * deleted ends by itself.
 * @throws AppError `voucher_busy` when something else keeps the voucher locked.
 */
export async function releaseHold(
  ctx: Pick<ApiContext, "pool" | "leases" | "log">,
  caller: Caller,
  ticket: string,
  reason: string | null,
): Promise<ReleaseResult> {
  if (!isTicket(ticket)) return NOTHING_LIVE;
  const voucherId = await findHoldVoucher(ctx.pool, ticket, caller.organizationId);
  if (voucherId === null) return NOTHING_LIVE;
  const released = await inTransaction(ctx.pool, (tx) => endLiveHold(tx, voucherId, ticket, reason)).catch((error) => {
    if (!isLockTimeout(error)) throw error;
    throw new AppError("voucher_busy", "This voucher is being changed at the moment. Please try again.", {
      retryAfterSeconds: 1,
    });
  });
  if (!released) return NOTHING_LIVE;
  await giveLeaseBack(ctx, voucherId, ticket);
  return { released: true };
}

async function endLiveHold(
  tx: Transaction,
  voucherId: string,
  ticket: string,
  reason: string | null,
): Promise<boolean> {
  await tx.query("SELECT set_config('lock_timeout', $1, true)", [String(LOCK_WAIT_MS)]);
  await lockVoucher(tx, voucherId);
  const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
  const hold = vouchers.get(voucherId)?.hold ?? null;
  if (liveHold(hold, now)?.ticket !== ticket) return false;
  return (await endHolds(tx, [ticket], now, "Released", reason)).size === 1;
}
