import type pg from "pg";
import { pickFields } from "../../contract/fields.ts";
import { markSandbox } from "../../contract/sandbox.ts";
import { type FoundVoucher, type FoundVouchers, foundVoucher } from "../../contract/voucher-history.ts";
import { type Transaction, usePlansOfService } from "../../db/pool.ts";
import { onSnapshot } from "../../db/transaction.ts";
import { findVouchersByName, type VoucherName } from "../../db/vouchers.ts";
import { normaliseCode, normaliseRedeemCode } from "../../domain/codes.ts";
import { statusAt } from "../../domain/voucher.ts";

/** Most vouchers in one result. A query finds more than one only by an imported code or a reference that several organizations use. */
const FOUND_MAX = 1_000;

/** What to find vouchers by. Codes may have any spelling that `normaliseCode` accepts. */
export type VoucherQuery =
  | { by: "code" | "ticket" | "id" | "externalRef" | "redeemCode"; value: string }
  | { by: "serial"; batchId: string; serial: number };

const NO_NAME: VoucherName = {
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
  const name = nameOf(query);
  // Postgres text cannot contain NUL.
  if (name === null || [organizationId, ...Object.values(name)].some((value) => String(value).includes("\0")))
    return [];
  await usePlansOfService(tx);
  const rows = await findVouchersByName(tx, organizationId, name, FOUND_MAX);
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

/** The name to search for, or null if no voucher can have it. */
function nameOf(query: VoucherQuery): VoucherName | null {
  switch (query.by) {
    case "serial":
      return { ...NO_NAME, batchId: query.batchId, serial: query.serial };
    case "code": {
      const codeKey = normaliseCode(query.value);
      return codeKey === null ? null : { ...NO_NAME, codeKey };
    }
    case "redeemCode": {
      const redeemCode = normaliseRedeemCode(query.value);
      return redeemCode === null ? null : { ...NO_NAME, redeemCode };
    }
    case "ticket":
      return { ...NO_NAME, ticket: query.value };
    case "id":
      return { ...NO_NAME, voucherId: query.value };
    case "externalRef":
      // Stored references have no surrounding spaces.
      return { ...NO_NAME, externalRef: query.value.trim() };
  }
}
