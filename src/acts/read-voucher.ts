import type pg from "pg";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { CODE_SYMBOLS, hasValidCheckSymbol, normaliseCode, repairCode } from "../core/voucher/codes.ts";
import { resolveVouchers, type Voucher } from "../core/voucher/db/vouchers.ts";
import type { Reservation } from "../core/voucher/reservation.ts";
import { statusAt, type VoucherStatus } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";

/** A voucher with its current status, which may be Expired, instead of the stored status. */
type CurrentVoucher = Omit<Voucher, "status" | "suspended"> & { status: VoucherStatus };

/**
 * Reads a voucher by its code, with its current status.
 * @throws AppError `voucher_not_found`. If the code's check symbol is wrong, the message says so.
 */
export async function readVoucher(
  { pool }: { pool: pg.Pool },
  organizationId: string,
  code: string,
): Promise<{ voucher: CurrentVoucher; reservation: Omit<Reservation, "tokenSecretId"> | null; sandbox?: true }> {
  const codeKey = normaliseCode(code);
  const wanted = [codeKey, ...repairCode(code)].map((key) => ({
    organizationId,
    codeKey: key,
    ticket: null,
    externalRef: null,
  }));
  const found = (await resolveVouchers(pool, wanted)).find(({ voucher }) => voucher !== null);
  if (!found?.voucher) {
    const isMistyped = codeKey?.length === CODE_SYMBOLS && !hasValidCheckSymbol(code);
    throw new AppError(
      "voucher_not_found",
      isMistyped
        ? "No voucher has this code. Its check symbol is wrong: it is mistyped, or scanned for another keyboard."
        : `No voucher of ${organizationId} has this code.`,
    );
  }
  const { suspended: _, ...voucher } = found.voucher;
  const { reservation, now } = found;
  const organization = await findOrganization(pool, organizationId);
  return {
    voucher: { ...voucher, status: statusAt(found.voucher, now) },
    reservation: reservation && {
      ticket: reservation.ticket,
      keyId: reservation.keyId,
      startedAt: reservation.startedAt,
      expiresAt: reservation.expiresAt,
    },
    ...markSandbox(organization?.sandbox === true),
  };
}
