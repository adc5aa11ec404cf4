import type { ApiContext } from "../context.ts";
import type { ResolvedVoucher, Voucher } from "../db/vouchers.ts";
import { ENTITY_TYPE } from "../domain/chain.ts";
import { statusAt, type VoucherStatus, type VoucherType } from "../domain/voucher.ts";
import type { Caller } from "./caller.ts";
import { resolveVoucher, voucherNotFound } from "./resolve-voucher.ts";

/** The `voucher` of an answer (contract, "Voucher"). */
export interface VoucherView {
  id: string;
  code: string;
  serial: number;
  brand: string;
  productName: string;
  productKey: string;
  type: VoucherType;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel: string | null;
  validUntil: string;
  status: VoucherStatus;
  redeemedAt: string | null;
}

/** The `reservation` of a look-up: only the holder is told its ticket, and nobody its token. */
export interface ReservationView {
  ticket: string | null;
  startedAt: string;
  expiresAt: string;
  heldByCaller: boolean;
}

export interface LookUpResult {
  voucher: VoucherView;
  reservation: ReservationView | null;
  verifyUrl: string;
}

/**
 * Tells what a voucher is worth and how it stands, changing nothing. Needs Postgres alone.
 * @throws AppError `voucher_not_found`, `too_many_misses`.
 */
export async function lookUpVoucher(
  ctx: Pick<ApiContext, "voucherReads" | "limits" | "config">,
  caller: Caller,
  codeOrTicket: string,
): Promise<LookUpResult> {
  const { now, voucher, hold } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw voucherNotFound();
  return {
    voucher: viewVoucher(voucher, now),
    reservation: viewHold(hold, caller),
    verifyUrl: verifyUrl(ctx, voucher.id),
  };
}

/** Where anyone who knows a voucher's id can check its chain. */
export function verifyUrl(ctx: Pick<ApiContext, "config">, voucherId: string): string {
  return `${ctx.config.baseUrl}/integrity/events/${ENTITY_TYPE}/${voucherId}`;
}

/** A voucher as answers show it, with its status at `now`. */
export function viewVoucher(voucher: Voucher, now: Date): VoucherView {
  return {
    id: voucher.id,
    code: voucher.code,
    serial: voucher.serial,
    brand: voucher.brand,
    productName: voucher.productName,
    productKey: voucher.productKey,
    type: voucher.type,
    retailPriceUsd: voucher.retailPriceUsd,
    priceUsd: voucher.priceUsd,
    benefitMonths: voucher.benefitMonths,
    usageUnitLabel: voucher.usageUnitLabel,
    validUntil: voucher.validUntil.toISOString(),
    status: statusAt(voucher, now),
    redeemedAt: voucher.redeemedAt?.toISOString() ?? null,
  };
}

function viewHold(hold: ResolvedVoucher["hold"], caller: Caller): ReservationView | null {
  if (hold === null) return null;
  const heldByCaller = hold.keyId === caller.keyId;
  return {
    ticket: heldByCaller ? hold.ticket : null,
    startedAt: hold.startedAt.toISOString(),
    expiresAt: hold.expiresAt.toISOString(),
    heldByCaller,
  };
}
