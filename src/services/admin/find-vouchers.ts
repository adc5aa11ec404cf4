import type pg from "pg";
import { markSandbox, pickFields } from "../../contract/fields.ts";
import { type FoundVoucher, type FoundVouchers, foundVoucher } from "../../contract/voucher-history.ts";
import { type Transaction, usePlansOfService } from "../../db/pool.ts";
import { onSnapshot } from "../../db/transaction.ts";
import { selectVouchersBy, type VoucherCriteria } from "../../db/voucher-ranges.ts";
import { normaliseCode, normaliseRedeemCode } from "../../domain/codes.ts";
import { isTicket } from "../../domain/ids.ts";
import { statusAt } from "../../domain/voucher.ts";

/** Most vouchers in one result. A query finds more than one only by an imported code or a reference that several organizations use. */
const FOUND_MAX = 1_000;

/** What to find vouchers by. Codes may have any spelling that `normaliseCode` accepts. */
export type VoucherQuery =
  | { by: "code" | "ticket" | "id" | "externalRef" | "redeemCode"; value: string }
  | { by: "serial"; batchId: string; serial: number };

const NO_CRITERIA: VoucherCriteria = {
  ...{ codeKey: null, ticket: null, voucherId: null, externalRef: null, redeemCode: null, batchId: null, serial: null },
};

/** Finds vouchers in one organization or, if `organizationId` is null, in all of them. For operators only. */
export async function findVouchers(
  ctx: { pool: pg.Pool },
  query: VoucherQuery,
  organizationId: string | null,
): Promise<FoundVouchers> {
  return { items: await onSnapshot(ctx.pool, (tx) => findVouchersIn(tx, query, organizationId)) };
}

/** Like {@link findVouchers}, in a given transaction. Sets the service's planner settings for the rest of the transaction. */
export async function findVouchersIn(
  tx: Transaction,
  query: VoucherQuery,
  organizationId: string | null,
): Promise<FoundVoucher[]> {
  const criteria = criteriaOf(query);
  const given = Object.values(criteria);
  // Postgres text cannot contain NUL.
  if (given.includes(null) || [organizationId, ...given].some((value) => String(value).includes("\0"))) return [];
  await usePlansOfService(tx);
  const rows = await selectVouchersBy(tx, organizationId, { ...NO_CRITERIA, ...criteria }, FOUND_MAX);
  return rows.map(({ now, sandbox, ...row }) =>
    pickFields(foundVoucher, {
      ...row,
      ...markSandbox(sandbox),
      status: statusAt(row, now),
      validUntil: row.validUntil.toISOString(),
      redeemedAt: row.redeemedAt?.toISOString() ?? null,
    }),
  );
}

/** The criteria of a query; null for a value that no voucher can have. */
function criteriaOf(query: VoucherQuery): Partial<VoucherCriteria> {
  switch (query.by) {
    case "serial":
      return { batchId: query.batchId, serial: query.serial };
    case "code":
      return { codeKey: normaliseCode(query.value) };
    case "redeemCode":
      return { redeemCode: normaliseRedeemCode(query.value) };
    case "ticket":
      return { ticket: query.value };
    case "id":
      return { voucherId: query.value };
    case "externalRef":
      // Stored references have no surrounding spaces.
      return { externalRef: query.value.trim() };
  }
}

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
  const [, batchId, serial] = /^(bat_[0-9a-z]+)[\s/#,]+(\d{1,9})$/.exec(words) ?? [];
  if (batchId !== undefined) return [{ by: "serial", batchId, serial: Number(serial) }];
  const id = /(?:^|\/VoucherInstance\/)(vch_[0-9a-z]{26})(?=$|[/?#])/.exec(words)?.[1];
  const queries: VoucherQuery[] = (["code", "externalRef", "redeemCode"] as const).map((by) => ({ by, value: words }));
  // In addition to the other queries, because a partner's reference may look like an id or a ticket.
  if (id !== undefined) queries.unshift({ by: "id", value: id });
  if (isTicket(words)) queries.unshift({ by: "ticket", value: words });
  return queries;
}
