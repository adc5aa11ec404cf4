import { hostname } from "node:os";
import type pg from "pg";
import type { Logger } from "pino";
import { AppError, voucherBusy } from "../../platform/api/errors.ts";
import type { RandomBytes } from "../../platform/base32.ts";
import {
  inTransaction,
  isLimitExceeded,
  isLockTimeout,
  isRetryable,
  waitForLocks,
  write,
} from "../../platform/db/transaction.ts";
import type { Bulkhead } from "../callers/bulkhead.ts";
import { announceExpiredReservations } from "../chain/db/outbox.ts";
import { recordExpiries } from "../chain/record-expiries.ts";
import type { Caller } from "../keys/caller.ts";
import { type Leases, releaseLeases } from "../reserve/lease.ts";
import { type AdvanceResponse, LIVE_RESERVATIONS_MAX } from "./api.ts";
import { moveSandbox } from "./db/sandbox.ts";

/** Maximum wait for a locked row. Milliseconds. */
const LOCK_WAIT_MS = 3_000;
/** Maximum time for which a call records expiries: enough for thousands. The sweeper records the rest. Milliseconds. */
const RECORD_MAX_MS = 2_000;

/**
 * Moves the future times of the caller's sandbox to earlier times, in one transaction with the audit entry. Then
 * releases the leases of the reservations that the move has ended, and records expiries of vouchers for a short time.
 * The sweeper records the rest.
 * @throws AppError `invalid_request` for more than {@link LIVE_RESERVATIONS_MAX} live reservations, `voucher_busy` when
 * a row stays locked, `overloaded`.
 */
export async function advanceSandbox(
  ctx: {
    pool: pg.Pool;
    leases: Leases;
    randomBytes: RandomBytes;
    sandboxAdvances: Bulkhead<"organization">;
    log: Logger;
  },
  caller: Caller,
  seconds: number,
): Promise<AdvanceResponse> {
  return ctx.sandboxAdvances(caller, async () => {
    const moved = await moveTimes(ctx, caller, seconds);
    const { endedTickets, endedVoucherIds, expiredBatchIds, vouchersExpired } = moved;
    await releaseLeases(
      ctx,
      endedTickets.map((ticket, index) => ({ ticket, voucherId: endedVoucherIds[index] ?? "" })),
    );
    if (vouchersExpired > 0) {
      await recordExpiries(ctx, performance.now() + RECORD_MAX_MS, expiredBatchIds).catch((error) =>
        ctx.log.warn({ err: error }, "the sweeper will record the expiries of a sandbox"),
      );
    }
    return { advancedSeconds: seconds, reservationsEnded: endedTickets.length, vouchersExpired };
  });
}

async function moveTimes(ctx: { pool: pg.Pool }, { organizationId, keyId }: Caller, seconds: number) {
  try {
    return await inTransaction(ctx.pool, async (tx) => {
      await waitForLocks(tx, LOCK_WAIT_MS);
      const moved = await moveSandbox(tx, { organizationId, seconds, keyId, osUser: "api", host: hostname() });
      await write(tx, announceExpiredReservations(moved.endedTickets));
      return moved;
    });
  } catch (error) {
    if (isLockTimeout(error) || isRetryable(error)) throw voucherBusy();
    if (!isLimitExceeded(error)) throw error;
    throw new AppError("invalid_request", (t) => t("inDetail.sandboxFull", { max: LIVE_RESERVATIONS_MAX }), {
      cause: error,
    });
  }
}
