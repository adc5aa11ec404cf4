import { findLineage } from "../core/catalog/db/catalog.ts";
import { nextEvent } from "../core/chain/chain.ts";
import { lackingSuspensions } from "../core/chain/record-suspensions.ts";
import { appendEvents, openSinks, readPending } from "../core/chain/seal-events.ts";
import { type EndedReservation, endReservations } from "../core/reserve/db/reservations.ts";
import { normaliseCode } from "../core/voucher/codes.ts";
import { findVoucherInOrganization } from "../core/voucher/db/voucher-ranges.ts";
import { type LockedVoucher, lockVoucher, readLockedVouchers, voidVouchers } from "../core/voucher/db/vouchers.ts";
import { liveReservation } from "../core/voucher/reservation.ts";
import { type VoucherRefusal, type VoucherState, voucherRefusal } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import type { RandomBytes } from "../platform/base32.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { write } from "../platform/db/transaction.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** The id of an organization's voucher with this code or id. @throws AppError `voucher_not_found`. */
export async function findVoucherId(
  { pool }: Pick<AuditContext, "pool">,
  organizationId: string,
  codeOrId: string,
): Promise<string> {
  const lineage = codeOrId.startsWith("vch_") ? await findLineage(pool, codeOrId) : null;
  if (lineage?.organizationId === organizationId && lineage.voucherId !== null) return lineage.voucherId;
  const voucherId = await findVoucherInOrganization(pool, { organizationId, codeKey: normaliseCode(codeOrId) });
  if (voucherId !== null) return voucherId;
  throw new AppError("voucher_not_found", `No voucher of ${organizationId} has this code or id.`);
}

/** Why a voucher cannot be voided at `now`, or null. An issuer can void a Suspended voucher. */
export function voidRefusal(voucher: VoucherState, now: Date): Exclude<VoucherRefusal, "voucher_suspended"> | null {
  const refusal = voucherRefusal(voucher, now);
  return refusal === "voucher_suspended" ? null : refusal;
}

/**
 * Voids an Active or Suspended voucher permanently. Ends its reservation and appends the sealed event in the same
 * transaction. The reservation's lease needs no release, because a voided voucher is refused before its lease is read.
 * @throws AppError `voucher_not_found`, `voucher_used`, `voucher_voided`, `voucher_expired`.
 */
export function voidById(ctx: AuditContext, voucherId: string, reason: string | null): Promise<void> {
  return withAuditEntry(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new AppError("voucher_not_found", "There is no voucher with this id.");
    const final = voidRefusal(voucher, now);
    if (final !== null) throw new AppError(final, (t) => t(`inDetail.notVoided.${final}`));
    await voidActive(ctx, tx, [voucher], now, reason);
  });
}

/**
 * Voids vouchers that the transaction has locked and that are Active or Suspended at `now`. Ends their reservations and
 * appends the sealed events. If a chain lacks the event about its batch's suspension, adds it first, because calls may
 * have been refused for the suspension.
 */
export async function voidActive(
  ctx: { randomBytes: RandomBytes },
  tx: Transaction,
  vouchers: readonly LockedVoucher[],
  now: Date,
  reason: string | null,
): Promise<void> {
  const data = { reason: reason ?? undefined };
  const suspensions = await lackingSuspensions(ctx, tx, vouchers, now);
  const before = new Map(suspensions.map(({ voucherId, sequence }) => [voucherId, sequence]));
  const voids = vouchers.map((voucher) => {
    const lastSequence = before.get(voucher.id) ?? voucher.lastSequence;
    return nextEvent(ctx.randomBytes, { ...voucher, lastSequence }, "voucher.instance.voided", now, data);
  });
  const pending = await readPending(tx, vouchers);
  const { writes, advances } = appendEvents(await openSinks(tx), vouchers, pending, [...suspensions, ...voids]);
  const ended = vouchers.flatMap((voucher) => endedByVoid(voucher, now));
  await write(tx, [...endReservations(ended, now), ...writes, ...voidVouchers(advances)]);
}

/**
 * How the reservation of a voided voucher ends: Released if it is still live at `now`, or Expired if its time has
 * passed. Empty if the voucher has no reservation in state Live.
 */
function endedByVoid({ reservation }: LockedVoucher, now: Date): EndedReservation[] {
  if (reservation === null) return [];
  const { ticket } = reservation;
  return liveReservation(reservation, now) === null
    ? [{ ticket, state: "Expired" }]
    : [{ ticket, state: "Released", reason: "voided" }];
}
