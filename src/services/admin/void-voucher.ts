import { refusal, voucherNotFound } from "../../contract/errors.ts";
import { insertPendingEvent } from "../../db/events.ts";
import { type EndedReservation, endReservations } from "../../db/reservations.ts";
import { write } from "../../db/transaction.ts";
import { findVoucherInOrganization, lockVoucher, readLockedVouchers, voidVoucherRow } from "../../db/vouchers.ts";
import { nextEvent } from "../../domain/chain.ts";
import { normaliseCode } from "../../domain/codes.ts";
import { liveReservation } from "../../domain/reservation.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** A voided voucher, and the ticket of the live reservation that ended with it. */
export interface VoidResult {
  voucherId: string;
  endedTicket: string | null;
}

/**
 * Voids an Active voucher for good. Ends its reservation and appends the voided event in the same transaction. The event is
 * Pending until a seal job seals it.
 * @throws AppError `voucher_not_found`, or the refusal for a voucher that is redeemed, voided or expired.
 */
export async function voidVoucher(
  ctx: AuditContext,
  organizationId: string,
  code: string,
  reason: string | null,
): Promise<VoidResult> {
  const voucherId = await findVoucherInOrganization(ctx.pool, organizationId, normaliseCode(code));
  if (voucherId === null) throw voucherNotFound();
  return withAuditEntry(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${voucherId} was not read`);
    const final = finalRefusal(voucher, now);
    if (final !== null) throw refusal(final);
    const { reservation } = voucher;
    const live = liveReservation(reservation, now);
    const ended: EndedReservation[] = [];
    if (live !== null) ended.push({ ticket: live.ticket, state: "Released", reason: "voided" });
    else if (reservation !== null) ended.push({ ticket: reservation.ticket, state: "Expired" });
    const data = { reason: reason ?? undefined };
    await write(tx, [
      ...endReservations(ended, now),
      ...voidVoucherRow(voucherId, voucher.lastSequence),
      ...insertPendingEvent(nextEvent(ctx.randomBytes, voucher, "voucher.instance.voided", now, data)),
    ]);
    return { voucherId, endedTicket: live?.ticket ?? null };
  });
}
