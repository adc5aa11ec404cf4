import { Coalescer } from "../batching/coalescer.ts";
import type { ApiContext } from "../context.ts";
import { isDatabaseUnavailable, isLockTimeout } from "../db/transaction.ts";
import { type ResolvedVoucher, resolveVouchers, type WantedVoucher } from "../db/vouchers.ts";
import { normaliseCode } from "../domain/codes.ts";
import { AppError } from "../domain/errors.ts";
import { isTicket } from "../domain/ids.ts";
import type { Caller } from "./caller.ts";
import { observeBatches } from "./observe-batches.ts";

/** Look-ups in one statement. */
const BATCH_MAX = 256;
/** Statements under way at once: reads do not depend on each other, and two keep the database busy while one result is unpacked. */
const LANES = 2;
/** Look-ups that may wait in one process. */
const WAITING_MAX = 10_000;

/** Coalesces every read of a voucher that partners name: look-ups, and the first read of reserve, redeem and events. */
export function openVoucherReads(
  ctx: Pick<ApiContext, "pool" | "metrics" | "traces">,
): Coalescer<WantedVoucher, ResolvedVoucher> {
  return new Coalescer((wanted) => resolveVouchers(ctx.pool, wanted), {
    batchMax: BATCH_MAX,
    waitingMax: WAITING_MAX,
    lanes: LANES,
    observer: observeBatches(ctx, "lookups"),
    splitOn: (error) => !isDatabaseUnavailable(error) && !isLockTimeout(error),
  });
}

/**
 * Reads the voucher that a code or ticket names within the caller's organization. What cannot be a code matches nothing, by the
 * same statement as everything else, so that no answer tells a foreign voucher from an unknown one.
 *
 * A code that names nothing is a miss. A key that missed too often is told nothing by code any more, but whether its reference is
 * confirmed. Tickets cannot be guessed and are not counted.
 * @throws AppError `too_many_misses`.
 */
export async function resolveVoucher(
  ctx: Pick<ApiContext, "voucherReads" | "limits">,
  caller: Caller,
  codeOrTicket: string,
  externalRef: string | null = null,
): Promise<ResolvedVoucher> {
  const { organizationId } = caller;
  const { misses } = ctx.limits;
  const resolve = (named: Pick<WantedVoucher, "codeKey" | "ticket">) =>
    ctx.voucherReads.submit({ organizationId, ...named, externalRef });
  if (isTicket(codeOrTicket)) {
    return resolve({ codeKey: null, ticket: codeOrTicket.includes("\0") ? null : codeOrTicket });
  }
  const byCode = () => resolve({ codeKey: normaliseCode(codeOrTicket), ticket: null });
  if (misses === null) return byCode();
  const guarded = await misses.guard(caller.keyId, byCode, ({ voucher, confirmed }) => voucher === null && !confirmed);
  if (guarded.told) return guarded.result;
  if (externalRef !== null) {
    const nothing = await resolve({ codeKey: null, ticket: null });
    if (nothing.confirmed) return nothing;
  }
  throw new AppError("too_many_misses", "Too many codes that do not exist were tried. Please try again later.", {
    retryAfterSeconds: Math.max(1, Math.ceil(guarded.resetMs / 1_000)),
  });
}

/** The one answer for vouchers that do not exist and vouchers of other organizations. */
export function voucherNotFound(): AppError {
  return new AppError("voucher_not_found", "No voucher of your brands matches this code or ticket.");
}
