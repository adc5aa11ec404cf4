import type pg from "pg";
import { selectEventsPage } from "../core/chain/db/events.ts";
import { viewEvent } from "../core/chain/read-chain.ts";
import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { findVouchersIn, type VoucherQuery } from "../core/look-up/find-vouchers.ts";
import { findRedemptionOfVoucher } from "../core/redeem/db/redemptions.ts";
import { selectReservationsOfVoucher } from "../core/reserve/db/reservations.ts";
import { normaliseTicket } from "../core/voucher/codes.ts";
import { isTicket } from "../core/voucher/ids.ts";
import { verifyUrl } from "../core/voucher/resolve-voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { onSnapshot } from "../platform/db/transaction.ts";

export interface HistoryDeps {
  pool: pg.Pool;
  config: Pick<Config, "baseUrl">;
}

/** Maximum number of events in one history. A chain usually has a few. */
const EVENTS_MAX = 1_000;
/** Maximum number of reservations in one history. A till that reserves and releases all day makes a few hundred. */
const RESERVATIONS_MAX = 1_000;

/**
 * Reads the history of an organization's voucher in one snapshot: its events, its newest reservations and its
 * redemption.
 * @param name the voucher's id, its code in any spelling, the ticket of one of its reservations, or a query.
 * @throws AppError `voucher_not_found`.
 */
export function readVoucherHistory(
  ctx: HistoryDeps,
  organizationId: string,
  name: string | VoucherQuery,
): Promise<VoucherHistory> {
  return readFoundHistory(ctx, name, (tx, query) => findVouchersIn(tx, [organizationId], query));
}

/**
 * Reads the history of the single voucher that `find` returns.
 * @throws AppError `voucher_not_found`; `invalid_request` when several organizations have this code.
 */
export async function readFoundHistory(
  ctx: HistoryDeps,
  name: string | VoucherQuery,
  find: (tx: Transaction, query: VoucherQuery) => Promise<FoundVoucher[]>,
): Promise<VoucherHistory> {
  return onSnapshot(ctx.pool, async (tx) => {
    const [voucher, ...others] = await find(tx, typeof name === "string" ? queryOf(name) : name);
    if (voucher === undefined)
      throw new AppError("voucher_not_found", "No voucher has this id, code, ticket or reference.");
    if (others.length > 0) {
      const owners = [voucher, ...others].map((each) => each.organizationId).join(", ");
      throw new AppError(
        "invalid_request",
        `Several organizations have this code or reference, so name one of them: ${owners}.`,
      );
    }
    const events = await selectEventsPage(tx, { voucherId: voucher.id, after: 0, limit: EVENTS_MAX });
    const reservations = await selectReservationsOfVoucher(tx, { voucherId: voucher.id, limit: RESERVATIONS_MAX });
    const redemption = await findRedemptionOfVoucher(tx, voucher.id);
    return {
      voucher: { ...voucher, verifyUrl: verifyUrl(ctx, voucher.id) },
      events: events.map(viewEvent),
      reservations: reservations.toReversed().map((reservation) => ({
        ...reservation,
        startedAt: reservation.startedAt.toISOString(),
        expiresAt: reservation.expiresAt.toISOString(),
        endedAt: reservation.endedAt?.toISOString() ?? null,
      })),
      redemption: redemption && { ...redemption, redeemedAt: redemption.redeemedAt.toISOString() },
    };
  });
}

function queryOf(name: string): VoucherQuery {
  if (isTicket(normaliseTicket(name))) return { by: "ticket", value: name };
  // An imported code may begin with the prefix of an id.
  return { by: /^vch_[0-9a-z]{26}$/.test(name) ? "id" : "code", value: name };
}
