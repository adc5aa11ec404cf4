import { nextEvent } from "../core/chain/chain.ts";
import { appendEvents, openSinks, readPending } from "../core/chain/seal-events.ts";
import { extendVouchers, type LockedVoucher, lockVoucher, readLockedVouchers } from "../core/voucher/db/vouchers.ts";
import { decideExtension } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { problemIn } from "../platform/api/problems.ts";
import type { RandomBytes } from "../platform/base32.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { write } from "../platform/db/transaction.ts";
import { InvalidValues, problemWith } from "./act.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

/** The schema version since which processes read the ends of individual vouchers. */
export const ENDS_SCHEMA = 28;

/** The error for an end that is not after `floor`. It names the field that each interface has for the end. */
export const tooEarly = (floor: Date): InvalidValues =>
  new InvalidValues([problemWith("validUntil", problemIn("laterThan", { name: floor.toISOString() }))]);

/**
 * Gives an Active or Expired voucher a later end, which makes it Active. Appends the sealed event in the same
 * transaction. A reservation of the voucher continues. Changes nothing if the voucher already has this end.
 * @throws InvalidValues; AppError `voucher_not_found`, `voucher_used`, `voucher_voided`; `unavailable` during an
 * upgrade.
 */
export function extendById(
  ctx: AuditContext,
  voucherId: string,
  validUntil: Date,
  reason: string | null,
): Promise<void> {
  return withAuditEntry(ctx, { type: "VoucherInstance", id: voucherId }, async (tx) => {
    await assertUpgraded(tx, ENDS_SCHEMA, "unavailable");
    await lockVoucher(tx, voucherId);
    const { now, vouchers } = await readLockedVouchers(tx, [voucherId]);
    const voucher = vouchers.get(voucherId);
    if (voucher === undefined) throw new AppError("voucher_not_found", "There is no voucher with this id.");
    const extension = decideExtension(voucher, validUntil, now);
    if (extension.kind === "refused") throw new AppError(extension.code);
    if (extension.kind === "tooEarly") throw tooEarly(extension.floor);
    if (extension.kind === "extended") await extendLocked(ctx, tx, [voucher], now, validUntil, reason);
  });
}

/** Gives locked vouchers a later end, as {@link decideExtension} allows, and appends the sealed events. */
export async function extendLocked(
  { randomBytes }: { randomBytes: RandomBytes },
  tx: Transaction,
  vouchers: readonly LockedVoucher[],
  now: Date,
  validUntil: Date,
  reason: string | null,
): Promise<void> {
  const { writes, advances } = appendEvents(
    await openSinks(tx),
    vouchers,
    await readPending(tx, vouchers),
    vouchers.map((voucher) =>
      nextEvent(randomBytes, voucher, "voucher.instance.extended", now, {
        validUntil: validUntil.toISOString(),
        previousValidUntil: voucher.validUntil.toISOString(),
        reason: reason ?? undefined,
      }),
    ),
  );
  await write(tx, [...writes, ...extendVouchers(advances, validUntil)]);
}
