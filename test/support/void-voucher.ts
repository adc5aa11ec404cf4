import { findVoucherId, voidById } from "../../src/acts/void-voucher.ts";
import type { AuditContext } from "../../src/acts/with-audit-entry.ts";

/** Voids an organization's voucher with this code. */
export async function voidVoucher(
  ctx: AuditContext,
  organizationId: string,
  code: string,
  reason: string | null,
): Promise<void> {
  return voidById(ctx, await findVoucherId(ctx, organizationId, code), reason);
}
