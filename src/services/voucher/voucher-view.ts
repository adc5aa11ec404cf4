import type { Config } from "../../config.ts";
import { pickFields } from "../../contract/fields.ts";
import { type VoucherView, voucherView } from "../../contract/voucher.ts";
import type { Voucher } from "../../db/vouchers.ts";
import { ENTITY_TYPE } from "../../domain/chain.ts";
import { statusAt } from "../../domain/voucher.ts";

/** A voucher as responses show it, with its status at `now`. */
export function viewVoucher(voucher: Voucher, now: Date): VoucherView {
  return pickFields(voucherView, {
    ...voucher,
    validUntil: voucher.validUntil.toISOString(),
    status: statusAt(voucher, now),
    redeemedAt: voucher.redeemedAt?.toISOString() ?? null,
  });
}

/** Where anyone who knows a voucher's id can verify its chain. */
export function verifyUrl({ config }: { config: Pick<Config, "baseUrl"> }, voucherId: string): string {
  return `${config.baseUrl}/integrity/events/${ENTITY_TYPE}/${voucherId}`;
}
