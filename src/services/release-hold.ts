import type { ApiContext } from "../context.ts";
import { findHoldVoucher } from "../db/reservations.ts";
import { isTicket } from "../domain/ids.ts";
import type { Caller } from "./caller.ts";
import { voucherBusy } from "./move-holds.ts";
import { giveLeaseBack } from "./reserve-voucher.ts";

/** The answer to release. Nothing to release is not an error, and no answer tells a foreign ticket from an unknown one. */
export type ReleaseResult = { released: true } | { released: false; reason: string };

const NOTHING_LIVE: ReleaseResult = {
  released: false,
  reason: "This ticket holds no voucher any more, or never did. Nothing needs to be released.",
};

/**
 * Gives a hold back unspent. Whoever of the organization has the ticket may do it. Needs Postgres alone: a lease that cannot be
 * deleted ends by itself.
 * @throws AppError `voucher_busy` when something else keeps the voucher locked.
 */
export async function releaseHold(
  ctx: Pick<ApiContext, "pool" | "holdLanes" | "leases" | "log">,
  caller: Caller,
  ticket: string,
  reason: string | null,
): Promise<ReleaseResult> {
  if (!isTicket(ticket)) return NOTHING_LIVE;
  const voucherId = await findHoldVoucher(ctx.pool, ticket, caller.organizationId);
  if (voucherId === null) return NOTHING_LIVE;
  const outcome = await ctx.holdLanes.submit({ kind: "release", voucherId, ticket, reason });
  if (outcome.kind === "busy") throw voucherBusy();
  if (outcome.kind !== "released") return NOTHING_LIVE;
  await giveLeaseBack(ctx, voucherId, ticket);
  return { released: true };
}
