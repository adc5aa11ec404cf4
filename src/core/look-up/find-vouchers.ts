import type pg from "pg";
import { markSandbox, pickFields } from "../../platform/api/fields.ts";
import { type Transaction, usePlansOfService } from "../../platform/db/pool.ts";
import { onSnapshot } from "../../platform/db/transaction.ts";
import { reasonIn } from "../chain/chain.ts";
import { normaliseCode, normaliseRedeemCode, normaliseTicket, repairCode } from "../voucher/codes.ts";
import { selectVouchersBy, type VoucherCriteria } from "../voucher/db/voucher-ranges.ts";
import { formsOf } from "../voucher/references.ts";
import { hasFinalStatus, statusAt } from "../voucher/voucher.ts";
import { type FoundVoucher, foundVoucher } from "./api/voucher-history.ts";

/** Maximum number of vouchers found. Only an imported code, or a reference of several organizations, finds several. */
const FOUND_MAX = 1_000;

/** The field by which to find vouchers, and its value. Codes may have any spelling that `normaliseCode` accepts. */
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

/** Finds vouchers of one organization. `across-organizations.ts` finds vouchers of all organizations. */
export function findVouchers(
  ctx: { pool: pg.Pool },
  organizationId: string,
  query: VoucherQuery,
): Promise<FoundVoucher[]> {
  return onSnapshot(ctx.pool, (tx) => findVouchersIn(tx, [organizationId], query));
}

/** Finds vouchers of these organizations. Sets the service's planner settings for the rest of the transaction. */
export async function findVouchersIn(
  tx: Transaction,
  organizationIds: readonly string[],
  query: VoucherQuery,
): Promise<FoundVoucher[]> {
  const found = new Map<string, Awaited<ReturnType<typeof selectVouchersBy>>[number]>();
  for (const criteria of criteriaOf(query)) {
    const given = Object.values(criteria);
    // Skips a search for text with NUL, because Postgres text cannot contain it.
    if (given.includes(null) || [...organizationIds, ...given].some((value) => String(value).includes("\0"))) continue;
    await usePlansOfService(tx);
    const rows = await selectVouchersBy(tx, organizationIds, { ...NO_CRITERIA, ...criteria }, FOUND_MAX);
    for (const row of rows) found.set(row.id, row);
  }
  return [...found.values()].map(({ now, sandbox, ...row }) =>
    pickFields(foundVoucher, {
      ...row,
      ...markSandbox(sandbox),
      status: statusAt(row, now),
      suspension:
        row.suspendedBy === null || hasFinalStatus(row)
          ? null
          : { by: row.suspendedBy, reason: row.batchReason ?? reasonIn(row.suspendedPayload) },
      validUntil: row.validUntil.toISOString(),
      redeemedAt: row.redeemedAt?.toISOString() ?? null,
    }),
  );
}

/** The criteria of a query. Each entry is one search. A null field stands for a value that no voucher can have. */
function criteriaOf(query: VoucherQuery): Partial<VoucherCriteria>[] {
  switch (query.by) {
    case "serial":
      return [{ batchId: query.batchId, serial: query.serial }];
    case "code":
      return [normaliseCode(query.value), ...repairCode(query.value)].map((codeKey) => ({ codeKey }));
    case "redeemCode":
      return [{ redeemCode: normaliseRedeemCode(query.value) }];
    case "ticket":
      return [{ ticket: normaliseTicket(query.value) }];
    case "id":
      return [{ voucherId: query.value }];
    case "externalRef":
      return formsOf(query.value).map((externalRef) => ({ externalRef }));
  }
}
