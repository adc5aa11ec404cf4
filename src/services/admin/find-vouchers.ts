import type pg from "pg";
import { markSandbox, pickFields } from "../../contract/fields.ts";
import { type FoundVoucher, type FoundVouchers, foundVoucher } from "../../contract/voucher-history.ts";
import { type Transaction, usePlansOfService } from "../../db/pool.ts";
import { onSnapshot } from "../../db/transaction.ts";
import { selectVouchersBy, type VoucherCriteria } from "../../db/voucher-ranges.ts";
import { normaliseCode, normaliseRedeemCode } from "../../domain/codes.ts";
import { statusAt } from "../../domain/voucher.ts";

/** Most vouchers in one result. A query finds more than one only by an imported code or a reference that several organizations use. */
const FOUND_MAX = 1_000;

/** What to find vouchers by. Codes may have any spelling that `normaliseCode` accepts. */
export type VoucherQuery =
  | { by: "code" | "ticket" | "id" | "externalRef" | "redeemCode"; value: string }
  | { by: "serial"; batchId: string; serial: number };

const NO_CRITERIA: VoucherCriteria = {
  codeKey: null,
  ticket: null,
  voucherId: null,
  externalRef: null,
  redeemCode: null,
  batchId: null,
  serial: null,
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
  // Postgres text cannot contain NUL.
  if (criteria === null || [organizationId, ...Object.values(criteria)].some((value) => String(value).includes("\0")))
    return [];
  await usePlansOfService(tx);
  const rows = await selectVouchersBy(tx, organizationId, criteria, FOUND_MAX);
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

/** The criteria of a query, or null if no voucher can meet them. */
function criteriaOf(query: VoucherQuery): VoucherCriteria | null {
  switch (query.by) {
    case "serial":
      return { ...NO_CRITERIA, batchId: query.batchId, serial: query.serial };
    case "code": {
      const codeKey = normaliseCode(query.value);
      return codeKey === null ? null : { ...NO_CRITERIA, codeKey };
    }
    case "redeemCode": {
      const redeemCode = normaliseRedeemCode(query.value);
      return redeemCode === null ? null : { ...NO_CRITERIA, redeemCode };
    }
    case "ticket":
      return { ...NO_CRITERIA, ticket: query.value };
    case "id":
      return { ...NO_CRITERIA, voucherId: query.value };
    case "externalRef":
      // Stored references have no surrounding spaces.
      return { ...NO_CRITERIA, externalRef: query.value.trim() };
  }
}
