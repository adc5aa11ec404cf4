import { AppError, refusal } from "../../contract/errors.ts";
import { insertPendingEvents } from "../../db/events.ts";
import { type EndedReservation, endReservations } from "../../db/reservations.ts";
import { write } from "../../db/transaction.ts";
import { findVoucherInOrganization } from "../../db/voucher-ranges.ts";
import { type LockedVoucher, lockVoucher, readLockedVouchers, voidVouchers } from "../../db/vouchers.ts";
import { type EventContent, nextEvent } from "../../domain/chain.ts";
import { normaliseCode, type RandomBytes } from "../../domain/codes.ts";
import { liveReservation } from "../../domain/reservation.ts";
import { finalRefusal } from "../../domain/voucher.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";

/** A voided voucher, and the ticket of the live reservation that the void ended; null if there was none. */
export interface VoidResult {
  voucherId: string;
  endedTicket: string | null;
}

/**
 * Voids an Active voucher for good. Ends its reservation and appends the voided event in the same transaction. The event is
 * Pending until a seal job seals it.
 * @throws AppError `voucher_not_found`, `voucher_used`, `voucher_voided`, `voucher_expired`.
 */
export async function voidVoucher(
  ctx: AuditContext,
  organizationId: string,
  code: string,
  reason: string | null,
): Promise<VoidResult> {
  const voucherId = await findVoucherInOrganization(ctx.pool, organizationId, normaliseCode(code));
  if (voucherId === null) throw new AppError("voucher_not_found", `No voucher of ${organizationId} has this code.`);
  return withAuditEntry(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${voucherId} was not read`);
    const final = finalRefusal(voucher, now);
    if (final !== null) throw refusal(final);
    const { sealedSequence, sealedHash } = voucher;
    const event = voidedEvent(ctx, voucher, now, reason);
    const advance = {
      voucherId,
      lastSequenceBefore: voucher.lastSequence,
      after: { lastSequence: event.sequence, sealedSequence, sealedHash },
    };
    const ended = endedByVoid(voucher, now);
    await write(tx, [...endReservations(ended, now), ...voidVouchers([advance]), ...insertPendingEvents([event])]);
    return { voucherId, endedTicket: liveReservation(voucher.reservation, now)?.ticket ?? null };
  });
}

/**
 * How the reservation of a voided voucher ends: Released if it is still live at `now`, or Expired if its time has passed. Empty if the
 * voucher has no reservation in state Live.
 */
export function endedByVoid({ reservation }: LockedVoucher, now: Date): EndedReservation[] {
  if (reservation === null) return [];
  const { ticket } = reservation;
  return liveReservation(reservation, now) === null
    ? [{ ticket, state: "Expired" }]
    : [{ ticket, state: "Released", reason: "voided" }];
}

/** The voided event of a locked, Active voucher. */
export function voidedEvent(
  ctx: { randomBytes: RandomBytes },
  voucher: LockedVoucher,
  now: Date,
  reason: string | null,
): EventContent {
  return nextEvent(ctx.randomBytes, voucher, "voucher.instance.voided", now, { reason: reason ?? undefined });
}
