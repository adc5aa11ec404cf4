import type pg from "pg";
import { Batcher } from "../../batching/batcher.ts";
import { type ExternalRef, type ReadRedemption, readRedemptions } from "../../db/redemptions.ts";
import { mayBeFromOneItem, readThenWrite } from "../../db/transaction.ts";
import { lockSettledVouchers } from "../../db/vouchers.ts";

/** The reference of an attempt to redeem, and the voucher that the attempt names. */
export interface OutcomeRequest extends ExternalRef {
  voucherId: string;
}

/** What Postgres knows about an attempt to redeem. */
export interface Outcome extends ReadRedemption {
  /**
   * Whether no transaction was changing the voucher at `now`. If so, every redemption decided before `now` is in this result,
   * and a later decision reads a later time under the voucher's lock.
   */
  isSettled: boolean;
}

/** Outcomes read in one transaction. */
const BATCH_MAX = 256;
/** Requests that may wait in one process. */
const WAITING_MAX = 4_000;

export type OutcomeReads = Batcher<OutcomeRequest, Outcome>;

/** Opens the batcher that reads outcomes of attempts to redeem. */
export function openOutcomeReads({ pool }: { pool: pg.Pool }): OutcomeReads {
  return new Batcher((requests: OutcomeRequest[]) => readOutcomes(pool, requests), {
    batchMax: BATCH_MAX,
    waitingMax: WAITING_MAX,
    splitOn: mayBeFromOneItem,
  });
}

/**
 * Reads many outcomes in one transaction. Locks each voucher in shared mode before it reads the reference and the time, so that no other
 * transaction changes the voucher meanwhile. Skips vouchers that another transaction is changing: their outcomes are not settled.
 */
function readOutcomes(pool: pg.Pool, requests: readonly OutcomeRequest[]): Promise<Outcome[]> {
  const voucherIds = [...new Set(requests.map((request) => request.voucherId))];
  return readThenWrite(
    pool,
    (tx) => Promise.all([lockSettledVouchers(tx, voucherIds), readRedemptions(tx, requests)]),
    async ([settled, read]) => ({
      result: requests.map(({ voucherId }, index) => ({
        ...(read[index] as ReadRedemption),
        isSettled: settled.has(voucherId),
      })),
      writes: [],
    }),
  );
}
