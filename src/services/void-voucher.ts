import { insertPendingEvent } from "../db/events.ts";
import { type EndedHold, endHolds } from "../db/reservations.ts";
import { write } from "../db/transaction.ts";
import { findVoucherInOrganization, lockVoucher, readLockedVouchers, voidVoucherRow } from "../db/vouchers.ts";
import { makeNonce } from "../domain/chain.ts";
import { normaliseCode } from "../domain/codes.ts";
import { refusal } from "../domain/errors.ts";
import { liveHold } from "../domain/hold.ts";
import { finalRefusal } from "../domain/voucher.ts";
import { type ActContext, recordAct } from "./record-act.ts";
import { voucherNotFound } from "./resolve-voucher.ts";

/** A voucher that was voided, and the hold that ended with it. */
export interface VoidResult {
  voucherId: string;
  endedTicket: string | null;
}

/**
 * Voids an Active voucher for good: status, the end of its hold and the event that says so are one transaction. The event is
 * Pending; a seal job or whoever moves the chain next seals it.
 * @throws AppError `voucher_not_found`, or the refusal of a voucher that cannot move any more.
 */
export async function voidVoucher(
  ctx: ActContext,
  organizationId: string,
  code: string,
  reason: string | null,
): Promise<VoidResult> {
  const voucherId = await findVoucherInOrganization(ctx.pool, organizationId, normaliseCode(code));
  if (voucherId === null) throw voucherNotFound();
  return recordAct(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new Error(`the locked voucher ${voucherId} was not read`);
    const final = finalRefusal(voucher, now);
    if (final !== null) throw refusal(final);
    const { hold } = voucher;
    const live = liveHold(hold, now);
    const ended: EndedHold[] = [];
    if (live !== null) ended.push({ ticket: live.ticket, state: "Released", reason: "voided" });
    else if (hold !== null) ended.push({ ticket: hold.ticket, state: "Expired" });
    const event = insertPendingEvent({
      voucherId,
      sequence: voucher.lastSequence + 1,
      eventType: "voucher.instance.voided",
      occurredAt: now,
      actorConnectedId: null,
      actorIsEmployee: null,
      data: {
        nonce: makeNonce(ctx.randomBytes),
        voucherCode: voucher.code,
        serial: voucher.serial,
        reason: reason ?? undefined,
      },
    });
    await write(tx, [...endHolds(ended, now), ...voidVoucherRow(voucherId, voucher.lastSequence), ...event]);
    return { voucherId, endedTicket: live?.ticket ?? null };
  });
}
