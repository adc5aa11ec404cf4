import type { Config } from "../../platform/config.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Caller } from "../keys/caller.ts";
import type { ResolvedVoucher } from "../voucher/db/vouchers.ts";
import { notFound, resolveVoucher, type VoucherReads, verifyUrl, viewVoucher } from "../voucher/resolve-voucher.ts";
import { hasFinalStatus } from "../voucher/voucher.ts";
import type { LookUpResponse } from "./api/look-up.ts";

/**
 * Returns a voucher's value, status and live reservation. Waits for the standbys before it returns the status
 * `Redeemed` or `Voided`. Works without Redis.
 * @throws AppError `voucher_not_found`, `too_many_misses`, `unavailable`.
 */
export async function lookUpVoucher(
  ctx: Confirming & { voucherReads: VoucherReads; limits: Limits; config: Config },
  caller: Caller,
  codeOrTicket: string,
): Promise<LookUpResponse> {
  const { now, voucher, reservation } = await readConfirmed(
    ctx,
    () => resolveVoucher(ctx, caller, codeOrTicket),
    (found) => found.voucher !== null && hasFinalStatus(found.voucher),
  );
  if (voucher === null) throw notFound(codeOrTicket);
  return {
    voucher: viewVoucher(voucher, now),
    reservation: viewReservation(reservation, caller),
    verifyUrl: verifyUrl(ctx, voucher.id),
  };
}

/** Returns the ticket only to the key that made the reservation. */
function viewReservation(reservation: ResolvedVoucher["reservation"], caller: Caller): LookUpResponse["reservation"] {
  if (reservation === null) return null;
  const heldByCaller = reservation.keyId === caller.keyId;
  return {
    ticket: heldByCaller ? reservation.ticket : null,
    startedAt: reservation.startedAt.toISOString(),
    expiresAt: reservation.expiresAt.toISOString(),
    heldByCaller,
  };
}
