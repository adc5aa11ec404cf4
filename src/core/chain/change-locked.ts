import type { Transaction } from "../../platform/db/pool.ts";
import { type LockedVoucher, readLockedVouchers } from "../voucher/db/vouchers.ts";
import { findDamaged } from "./db/broken-chains.ts";

/** A change of vouchers, and the events about it. */
export interface VoucherChange {
  /** Whether the change applies to a voucher that the transaction has locked. */
  applies(voucher: LockedVoucher, now: Date): boolean;
  /** Writes the change, with its events, for the vouchers to which it applies. */
  write(tx: Transaction, vouchers: readonly LockedVoucher[], now: Date): Promise<void>;
}

/** Changes the locked vouchers to which the change applies, except damaged ones. Returns both numbers. */
export async function changeLocked(
  tx: Transaction,
  voucherIds: readonly string[],
  { applies, write }: VoucherChange,
): Promise<{ changed: number; damaged: number }> {
  if (voucherIds.length === 0) return { changed: 0, damaged: 0 };
  const { now, vouchers } = await readLockedVouchers(tx, voucherIds);
  const fitting = [...vouchers.values()].filter((voucher) => applies(voucher, now));
  const damaged = await findDamaged(
    tx,
    fitting.map(({ id }) => id),
  );
  const whole = fitting.filter(({ id }) => !damaged.includes(id));
  if (whole.length > 0) await write(tx, whole, now);
  return { changed: whole.length, damaged: damaged.length };
}
