import type { Logger } from "pino";
import { voucherBusy } from "../../platform/api/errors.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import type { Caller } from "../keys/caller.ts";
import type { ResolvedVoucher } from "../voucher/db/vouchers.ts";
import { isTicket } from "../voucher/ids.ts";
import { resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import { type Leases, releaseLease } from "./lease.ts";
import type { ReservationCommitter } from "./reservation-committer.ts";

/**
 * Releases a live reservation by its ticket, for any key of the organization. A reservation that has ended stays ended,
 * provided that the clock does not go back. So the release of an ended reservation needs no lock, and only waits until
 * the standbys have what was read. Works without Redis.
 * @throws AppError `voucher_busy`, `unavailable`.
 */
export async function releaseReservation(
  ctx: Confirming & {
    voucherReads: VoucherReads;
    limits: Limits;
    reservationCommitter: ReservationCommitter;
    leases: Leases;
    log: Logger;
  },
  caller: Caller,
  ticket: string,
  reason: string | null,
): Promise<boolean> {
  if (!isTicket(ticket)) return false;
  const isLive = ({ reservation }: ResolvedVoucher) => reservation?.ticket === ticket;
  const found = await readConfirmed(
    ctx,
    () => resolveVoucher(ctx, caller, ticket),
    (found) => !isLive(found),
  );
  const { voucher } = found;
  if (voucher === null || !isLive(found)) return false;
  const outcome = await ctx.reservationCommitter.submit({
    kind: "release",
    voucherId: voucher.id,
    organizationId: caller.organizationId,
    ticket,
    reason,
  });
  if (outcome.kind === "busy") throw voucherBusy();
  if (outcome.kind !== "released") return false;
  await releaseLease(ctx, voucher.id, ticket);
  return true;
}
