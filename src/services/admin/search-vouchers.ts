import type pg from "pg";
import type { FoundVoucher } from "../../contract/voucher-history.ts";
import { isTicket } from "../../domain/ids.ts";
import { findVouchers, type VoucherQuery } from "./find-vouchers.ts";

/**
 * Finds vouchers of all organizations by an id, a verification URL, a code, a ticket, a partner's reference, a redeem code, or a batch's
 * id and a serial. Returns each voucher once.
 */
export async function searchVouchers(ctx: { pool: pg.Pool }, words: string): Promise<FoundVoucher[]> {
  const found = new Map<string, FoundVoucher>();
  // One query at a time, because a caller may use one connection at a time.
  for (const query of queriesFor(words.trim())) {
    for (const voucher of (await findVouchers(ctx, query, null)).items) found.set(voucher.id, voucher);
  }
  return [...found.values()];
}

function queriesFor(words: string): VoucherQuery[] {
  if (words === "") return [];
  const batchAndSerial = /^(bat_[0-9a-z]+)[\s/#,]+(\d{1,9})$/.exec(words);
  if (batchAndSerial !== null) {
    return [{ by: "serial", batchId: batchAndSerial[1] ?? "", serial: Number(batchAndSerial[2]) }];
  }
  const id = /(?:^|\/VoucherInstance\/)(vch_[0-9a-z]{26})(?=$|[/?#])/.exec(words)?.[1];
  const queries: VoucherQuery[] = (["code", "externalRef", "redeemCode"] as const).map((by) => ({ by, value: words }));
  // In addition to the other queries, because a partner's reference may look like an id or a ticket.
  if (id !== undefined) queries.unshift({ by: "id", value: id });
  if (isTicket(words)) queries.unshift({ by: "ticket", value: words });
  return queries;
}
