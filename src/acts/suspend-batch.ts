import { setTimeout as sleep } from "node:timers/promises";
import { batchResumption, batchSuspension } from "../core/chain/record-suspensions.ts";
import { isBatchSuspended, resumeBatchRow, suspendBatchRow } from "../core/voucher/db/voucher-ranges.ts";
import { selectVoucherLockers } from "../core/voucher/db/vouchers.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Advance } from "./act.ts";
import { assertUpgraded } from "./assert-upgraded.ts";
import { type BatchResult, changeBatch, readBatchSize, remainingOf } from "./change-batch.ts";
import { SUSPENSIONS_SCHEMA } from "./suspend-voucher.ts";
import { type AuditContext, lockWaitOf, withAuditEntry } from "./with-audit-entry.ts";

/** How long the sweeper leaves a batch's histories to the call that suspended or resumed the batch. Milliseconds. */
const FOLLOW_MS = 10_000;
/** Pause between two checks of the transactions of earlier calls. Milliseconds. */
const LOOK_MS = 20;

/**
 * Suspends all vouchers of a batch at once, by changing one row. Returns when all histories have the suspended event,
 * or earlier if there is an `endBy`. In both cases, no call that read the batch before its suspension can redeem any
 * more. Runs like {@link changeBatch}. A repeat changes only the remaining vouchers.
 * @throws the errors of {@link changeBatch}; AppError `not_found`; `voucher_busy` if an earlier call does not end;
 * `unavailable` during an upgrade.
 */
export async function suspendBatch(
  ctx: AuditContext,
  batchId: string,
  reason: string,
  onRange?: Advance,
): Promise<BatchResult<"suspended">> {
  const size = await readBatchSize(ctx, batchId);
  await withAuditEntry(ctx, { type: "Batch", id: batchId }, async (tx) => {
    await assertUpgraded(tx, SUSPENSIONS_SCHEMA, "unavailable");
    await suspendBatchRow(tx, { id: batchId, reason, followMs: FOLLOW_MS });
  });
  await awaitEarlierCalls(ctx);
  return changeBatch(ctx, { id: batchId, size }, { ...batchSuspension(ctx), done: "suspended" }, onRange);
}

/**
 * Resumes the vouchers of a batch one after another, except vouchers that were suspended individually. First adds
 * missing suspended events to the histories, so that each refusal because of the suspension is explained. Runs like
 * {@link changeBatch}.
 * @throws the errors of {@link changeBatch}; AppError `not_found`; `unavailable` during an upgrade.
 */
export async function resumeBatch(
  ctx: AuditContext,
  batchId: string,
  reason: string | null,
  onRange?: Advance,
): Promise<BatchResult<"resumed">> {
  const size = await readBatchSize(ctx, batchId);
  const nothing: BatchResult<"resumed"> = { resumed: 0, alreadyFinal: 0 };
  if (await isBatchSuspended(ctx.pool, batchId)) {
    const lacking = { ...batchSuspension(ctx), done: "suspended" };
    const before = await changeBatch(ctx, { id: batchId, size }, lacking, () => onRange?.(0, size, nothing));
    if (remainingOf(size, before) > 0) return nothing;
  }
  await withAuditEntry(ctx, { type: "Batch", id: batchId }, async (tx) => {
    await assertUpgraded(tx, SUSPENSIONS_SCHEMA, "unavailable");
    await resumeBatchRow(tx, { id: batchId, reason, followMs: FOLLOW_MS });
  });
  return changeBatch(ctx, { id: batchId, size }, { ...batchResumption(ctx), done: "resumed" }, onRange);
}

/**
 * Waits until each transaction that now has vouchers locked has ended. A call locks its voucher before it reads whether
 * the batch is suspended. So every call that has not seen the suspension is among these transactions, and calls need
 * not lock the batch.
 * @throws AppError `voucher_busy` if such a transaction does not end within the lock wait of the caller.
 */
async function awaitEarlierCalls(ctx: AuditContext): Promise<void> {
  const giveUpAt = performance.now() + lockWaitOf(ctx);
  let earlier = await selectVoucherLockers(ctx.pool, null);
  while (earlier.length > 0) {
    if (performance.now() >= giveUpAt) {
      throw new AppError("voucher_busy", "The batch is suspended, but earlier calls have not ended: repeat this one.");
    }
    await sleep(LOOK_MS);
    earlier = await selectVoucherLockers(ctx.pool, earlier);
  }
}
