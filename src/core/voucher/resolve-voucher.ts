import type pg from "pg";
import { AppError, voucherNotFound } from "../../platform/api/errors.ts";
import { pickFields } from "../../platform/api/fields.ts";
import { Batcher } from "../../platform/batching/batcher.ts";
import type { Config } from "../../platform/config.ts";
import { mayBeFromOneItem } from "../../platform/db/transaction.ts";
import type { Limits } from "../../platform/limits/open-limits.ts";
import type { Caller } from "../keys/caller.ts";
import { type Observing, observeBatches } from "../metrics/observe-batches.ts";
import { type VoucherView, voucherView } from "./api/voucher.ts";
import { isTypedInOtherLayout, normaliseCode, normaliseTicket, repairCode } from "./codes.ts";
import { type ResolvedVoucher, resolveVouchers, type Voucher, type WantedVoucher } from "./db/vouchers.ts";
import { isTicket } from "./ids.ts";
import { ENTITY_TYPE, statusAt } from "./voucher.ts";

/** Maximum number of look-ups in one statement. */
const BATCH_MAX = 256;
/** Maximum number of statements at the same time. While one runs, the process reads the result of the other. */
const CONCURRENCY = 2;
/** Maximum number of look-ups that may wait in one process. */
const WAITING_MAX = 10_000;

/** Batched reads of the vouchers that callers name. */
export type VoucherReads = Batcher<WantedVoucher, ResolvedVoucher>;

/**
 * Opens the batcher for look-ups, first reads of reserve, redeem, release and events, and reads of acquired vouchers.
 */
export function openVoucherReads(ctx: Observing & { pool: pg.Pool }): VoucherReads {
  return new Batcher((wanted) => resolveVouchers(ctx.pool, wanted), {
    batchMax: BATCH_MAX,
    waitingMax: WAITING_MAX,
    concurrency: CONCURRENCY,
    ownerOf: ({ organizationId }) => organizationId,
    observer: observeBatches(ctx, "lookups"),
    splitOn: mayBeFromOneItem,
  });
}

/**
 * Reads the voucher that a code or ticket names within the caller's organization. Malformed codes run through the same
 * statement, so a response never distinguishes a voucher of another organization from an unknown voucher. A code counts
 * as one miss if it matches no voucher, neither as typed nor {@link repairCode repaired}. Above the limit of misses, a
 * look-up by code only returns the redemption of one of `externalRefs`, if there is one. Texts that cannot be codes,
 * and unknown tickets, do not count as misses: they guess no code.
 * @throws AppError `too_many_misses`.
 */
export async function resolveVoucher(
  ctx: { voucherReads: VoucherReads; limits: Limits },
  caller: Caller,
  typed: string,
  externalRefs: readonly string[] = [],
): Promise<ResolvedVoucher> {
  const codeOrTicket = normaliseTicket(typed);
  const { organizationId } = caller;
  const { misses } = ctx.limits;
  const resolve = (
    named: Pick<WantedVoucher, "codeKey" | "ticket">,
    externalRef: string | null = externalRefs.at(-1) ?? null,
  ) => ctx.voucherReads.submit({ organizationId, ...named, externalRef });
  if (isTicket(codeOrTicket)) {
    return resolve({ codeKey: null, ticket: codeOrTicket.includes("\0") ? null : codeOrTicket });
  }
  const codeKey = normaliseCode(codeOrTicket);
  const byCode = async () => {
    let found = await resolve({ codeKey, ticket: null });
    for (const repaired of isMiss(found) ? repairCode(codeOrTicket) : [])
      if (isMiss(found)) found = await resolve({ codeKey: repaired, ticket: null });
    return found;
  };
  if (misses === null || (codeKey === null && repairCode(codeOrTicket).length === 0)) return byCode();
  const guarded = await misses.guard(caller.keyId, byCode, isMiss);
  if (guarded.allowed) return guarded.result;
  for (const externalRef of externalRefs) {
    const byReference = await resolve({ codeKey: null, ticket: null }, externalRef);
    if (byReference.redeemed !== null) return byReference;
  }
  throw tooManyMisses(guarded.resetMs);
}

const isMiss = ({ voucher, redeemed }: ResolvedVoucher) => voucher === null && redeemed === null;

/** The error for a text that names no voucher of the caller. It depends on the text alone, so it confirms no code. */
export function notFound(typed: string): AppError {
  return isTypedInOtherLayout(typed)
    ? new AppError("voucher_not_found", (t) => t("inDetail.otherLayout"))
    : voucherNotFound();
}

/** Runs a search for codes, unless the key has too many misses. @throws AppError `too_many_misses`. */
export async function guardMisses<Found>(
  { limits: { misses } }: MissGuard,
  { keyId }: Pick<Caller, "keyId">,
  find: () => Promise<Found>,
  isMiss: (found: Found) => boolean,
): Promise<Found> {
  if (misses === null) return find();
  const guarded = await misses.guard(keyId, find, isMiss);
  if (guarded.allowed) return guarded.result;
  throw tooManyMisses(guarded.resetMs);
}

/** What {@link guardMisses} needs. */
export interface MissGuard {
  limits: Pick<Limits, "misses">;
}

/** The error for a caller that has tried too many unknown codes. */
function tooManyMisses(resetMs: number): AppError {
  const retryAfterSeconds = Math.max(1, Math.ceil(resetMs / 1_000));
  return new AppError("too_many_misses", undefined, { retryAfterSeconds });
}

/** A voucher in the form of responses, with its status at `now`. */
export function viewVoucher(voucher: Voucher, now: Date): VoucherView {
  return pickFields(voucherView, {
    ...voucher,
    validUntil: voucher.validUntil.toISOString(),
    status: statusAt(voucher, now),
    redeemedAt: voucher.redeemedAt?.toISOString() ?? null,
  });
}

/** The address at which anyone who knows a voucher's id can verify its chain. */
export function verifyUrl({ config }: { config: Pick<Config, "baseUrl"> }, voucherId: string): string {
  return `${config.baseUrl}/integrity/events/${ENTITY_TYPE}/${voucherId}`;
}
