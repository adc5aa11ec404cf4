import type pg from "pg";
import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { findVouchersIn, type VoucherQuery } from "../core/look-up/find-vouchers.ts";
import { normaliseTicket } from "../core/voucher/codes.ts";
import { selectOrganizationsWithBrands } from "../core/voucher/db/voucher-ranges.ts";
import { isTicket } from "../core/voucher/ids.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { onSnapshot } from "../platform/db/transaction.ts";
import { type HistoryDeps, readFoundHistory } from "./read-voucher-history.ts";

// Searches by operators in all organizations. A test rejects imports of this file by code for partners, users or the
// portal.

/** Finds vouchers of all organizations. */
export function findVouchersEverywhere(ctx: { pool: pg.Pool }, query: VoucherQuery): Promise<FoundVoucher[]> {
  return onSnapshot(ctx.pool, (tx) => findEverywhere(tx, query));
}

async function findEverywhere(tx: Transaction, query: VoucherQuery): Promise<FoundVoucher[]> {
  return findVouchersIn(tx, await selectOrganizationsWithBrands(tx), query);
}

/** Reads a voucher's history like `readVoucherHistory`, but for a voucher of any organization. */
export function readAnyVoucherHistory(ctx: HistoryDeps, name: string | VoucherQuery): Promise<VoucherHistory> {
  return readFoundHistory(ctx, name, findEverywhere);
}

/** Search criteria that are secrets. With one of them, anyone can redeem a voucher or prove that it was redeemed. */
const BY_SECRET: readonly VoucherQuery["by"][] = ["code", "ticket", "redeemCode"];

/**
 * Finds vouchers of all organizations by an id, a verification URL, a partner's reference, or a batch's id and a
 * serial. With `bySecrets`, also by a code, a ticket or a redeem code. Returns each voucher once.
 * @param bySecrets false for a caller who may not see these secrets, because search results would help to guess them.
 */
export async function searchVouchers(
  ctx: { pool: pg.Pool },
  words: string,
  bySecrets: boolean,
): Promise<FoundVoucher[]> {
  const found = new Map<string, FoundVoucher>();
  // Runs one query at a time, because each caller may use only one connection at a time.
  for (const query of queriesFor(words.trim()).filter(({ by }) => bySecrets || !BY_SECRET.includes(by))) {
    for (const voucher of await findVouchersEverywhere(ctx, query)) found.set(voucher.id, voucher);
  }
  return [...found.values()];
}

function queriesFor(words: string): VoucherQuery[] {
  if (words === "") return [];
  const [, batchId, serial] = /^(bat_[0-9a-z]+)[\s/#,]+(\d{1,9})$/.exec(words) ?? [];
  if (batchId !== undefined) return [{ by: "serial", batchId, serial: Number(serial) }];
  const id = /(?:^|\/VoucherInstance\/)(vch_[0-9a-z]{26})(?=$|[/?#])/.exec(words)?.[1];
  const queries: VoucherQuery[] = (["code", "externalRef", "redeemCode"] as const).map((by) => ({ by, value: words }));
  // A partner's reference may look like an id or a ticket. So these queries do not replace the query by reference.
  if (id !== undefined) queries.unshift({ by: "id", value: id });
  if (isTicket(normaliseTicket(words))) queries.unshift({ by: "ticket", value: words });
  return queries;
}
