import type pg from "pg";
import type { FoundVoucher } from "../../contract/voucher-history.ts";
import { isTicket } from "../../domain/ids.ts";
import { findVouchers, type VoucherQuery } from "./find-vouchers.ts";

/**
 * Finds vouchers by any of their names: an id, a verify link, a code, a ticket, a partner's reference, a redeem code, or a batch's id
 * and a serial. In all organizations, each voucher once.
 */
export async function searchVouchers(ctx: { pool: pg.Pool }, words: string): Promise<FoundVoucher[]> {
  const found = new Map<string, FoundVoucher>();
  // One after another: each read may use one connection at a time.
  for (const query of queriesFor(words.trim())) {
    for (const voucher of (await findVouchers(ctx, query, null)).items) found.set(voucher.id, voucher);
  }
  return [...found.values()];
}

function queriesFor(words: string): VoucherQuery[] {
  if (words === "") return [];
  const serial = /^(bat_[0-9a-z]+)[\s/#,]+(\d{1,9})$/.exec(words);
  if (serial !== null) return [{ by: "serial", batchId: serial[1] ?? "", serial: Number(serial[2]) }];
  const id = /(?:^|\/VoucherInstance\/)(vch_[0-9a-z]{26})(?=$|[/?#])/.exec(words)?.[1];
  const names: VoucherQuery[] = ["code", "externalRef", "redeemCode"].map(
    (by) => ({ by, value: words }) as VoucherQuery,
  );
  // A reference may look like an id or a ticket.
  if (id !== undefined) names.unshift({ by: "id", value: id });
  if (isTicket(words)) names.unshift({ by: "ticket", value: words });
  return names;
}
