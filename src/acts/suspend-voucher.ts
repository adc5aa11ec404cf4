import { nextEvent } from "../core/chain/chain.ts";
import { resumeLocked, writeSuspension } from "../core/chain/record-suspensions.ts";
import { type LockedVoucher, lockVoucher, readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { hasFinalStatus, voucherRefusal } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** The schema version since which processes recognize suspensions. */
export const SUSPENSIONS_SCHEMA = 33;

/**
 * Suspends a voucher, and appends the sealed event in the same transaction. Its reservation and its validity continue
 * to run. An Expired voucher can be suspended too, so that an extension does not make it usable. Changes nothing if the
 * voucher itself (not its batch) is already suspended.
 * @throws AppError `voucher_not_found`, `voucher_used`, `voucher_voided`; `unavailable` during an upgrade.
 */
export function suspendById(ctx: AuditContext, voucherId: string, reason: string): Promise<void> {
  return changeUnlessFinal(ctx, voucherId, async (tx, voucher, now) => {
    if (voucher.suspension === "own") return;
    const event = nextEvent(ctx.randomBytes, voucher, "voucher.instance.suspended", now, { reason });
    await writeSuspension(tx, [voucher], [event], "own");
  });
}

/**
 * Resumes a voucher, and appends the sealed event in the same transaction. The voucher then has the status that it
 * would have without the suspension. Changes nothing if it is not suspended.
 * @throws the errors of {@link suspendById}; AppError `voucher_suspended` while the voucher's batch is suspended.
 */
export function resumeById(ctx: AuditContext, voucherId: string, reason: string | null): Promise<void> {
  return changeUnlessFinal(ctx, voucherId, async (tx, voucher, now) => {
    if (voucher.batchSuspendedAt !== null) {
      throw new AppError("voucher_suspended", "The voucher's whole batch is suspended: resume the batch.");
    }
    if (voucher.suspension !== null) await resumeLocked(ctx, tx, [voucher], now, reason);
  });
}

/** Locks a voucher and changes it, if it is neither redeemed nor voided. */
function changeUnlessFinal(
  ctx: AuditContext,
  voucherId: string,
  change: (tx: Transaction, voucher: LockedVoucher, now: Date) => Promise<void>,
): Promise<void> {
  return withAuditEntry(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await assertUpgraded(tx, SUSPENSIONS_SCHEMA, "unavailable");
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new AppError("voucher_not_found", "There is no voucher with this id.");
    const refusal = hasFinalStatus(voucher) ? voucherRefusal(voucher, now) : null;
    if (refusal !== null) throw new AppError(refusal);
    await change(tx, voucher, now);
  });
}
