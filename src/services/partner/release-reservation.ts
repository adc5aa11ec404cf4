import type { Logger } from "pino";
import { voucherBusy } from "../../contract/errors.ts";
import { NOTHING_RELEASED, type ReleaseResponse } from "../../contract/release.ts";
import { isTicket } from "../../domain/ids.ts";
import { type Leases, releaseLease } from "../../holds/lease.ts";
import type { Limits } from "../../limits/open-limits.ts";
import type { Caller } from "../auth/caller.ts";
import { resolveVoucher, type VoucherReads } from "../voucher/resolve-voucher.ts";
import type { ReservationCommitter } from "./reservation-committer.ts";

/** Releases a reservation by its ticket, for any key of the organization. Works without Redis. @throws AppError `voucher_busy`. */
export async function releaseReservation(
  ctx: {
    voucherReads: VoucherReads;
    limits: Limits;
    reservationCommitter: ReservationCommitter;
    leases: Leases;
    log: Logger;
  },
  caller: Caller,
  ticket: string,
  reason: string | null,
): Promise<ReleaseResponse> {
  if (!isTicket(ticket)) return NOTHING_RELEASED;
  const { voucher } = await resolveVoucher(ctx, caller, ticket);
  if (voucher === null) return NOTHING_RELEASED;
  const outcome = await ctx.reservationCommitter.submit({ kind: "release", voucherId: voucher.id, ticket, reason });
  if (outcome.kind === "busy") throw voucherBusy();
  if (outcome.kind !== "released") return NOTHING_RELEASED;
  await releaseLease(ctx, voucher.id, ticket);
  return { released: true };
}
