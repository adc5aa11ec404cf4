import type pg from "pg";
import type { Bulkhead } from "../callers/bulkhead.ts";
import type { Caller } from "../keys/caller.ts";
import { guardMisses, type MissGuard } from "../voucher/resolve-voucher.ts";
import type { FoundVoucher } from "./api/voucher-history.ts";
import { findVouchers } from "./find-vouchers.ts";

/**
 * Finds the caller's vouchers by an order's reference, a voucher's code or a redeem code. The text may be a guessed
 * code, so a search without a result counts as a miss.
 */
export async function findOrders(
  ctx: MissGuard & { pool: pg.Pool; portalReads: Bulkhead<"organization"> },
  caller: Caller,
  words: string,
): Promise<FoundVoucher[]> {
  const { organizationId } = caller;
  const find = async () => {
    const found = new Map<string, FoundVoucher>();
    for (const by of ["externalRef", "code", "redeemCode"] as const) {
      const vouchers = await ctx.portalReads(caller, () => findVouchers(ctx, organizationId, { by, value: words }));
      for (const voucher of vouchers) found.set(voucher.id, voucher);
    }
    return [...found.values()];
  };
  return guardMisses(ctx, caller, find, (found) => found.length === 0);
}
