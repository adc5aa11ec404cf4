import type pg from "pg";
import { readChainsToSeal, sealChains } from "../../src/core/chain/seal-events.ts";
import { lockVoucher } from "../../src/core/voucher/db/vouchers.ts";
import { readThenWrite, waitForLocks } from "../../src/platform/db/transaction.ts";

/** Longest wait for the voucher's row. Milliseconds. */
const LOCK_WAIT_MS = 5_000;

/** Seals the Pending events of one voucher without a worker. Returns their number, or 0 if others sealed them. */
export async function sealVoucher(ctx: { pool: pg.Pool }, voucherId: string): Promise<number> {
  const [sealed = 0] = await readThenWrite(
    ctx.pool,
    (tx) =>
      Promise.all([waitForLocks(tx, LOCK_WAIT_MS), lockVoucher(tx, voucherId), readChainsToSeal(tx, [voucherId])]),
    async ([, , unsealed]) => sealChains([voucherId], unsealed),
  );
  return sealed;
}
