import type pg from "pg";
import { insertPendingEvents } from "../../src/core/chain/db/events.ts";
import { inTransaction, write } from "../../src/platform/db/transaction.ts";

const HOUR_MS = 3_600_000;

/**
 * Appends `count` Pending events to a voucher's chain, like operations outside the redeem job. By default, their times
 * are an hour ahead, so that they are never overdue and no sweeper requests their seals.
 */
export async function appendPending(
  db: pg.Pool,
  voucherId: string,
  count: number,
  occurredAt = new Date(Date.now() + HOUR_MS),
): Promise<void> {
  await inTransaction(db, async (tx) => {
    for (let i = 0; i < count; i++) {
      const { rows } = await tx.query(
        "UPDATE vouchers SET last_sequence = last_sequence + 1 WHERE id = $1 RETURNING last_sequence",
        [voucherId],
      );
      const event = insertPendingEvents([
        {
          voucherId,
          sequence: rows[0].last_sequence,
          eventType: i % 2 === 0 ? "voucher.instance.claimed" : "voucher.instance.bought",
          occurredAt,
          actorConnectedId: `user|${i}`,
          actorIsEmployee: i % 2 === 0,
          data: { nonce: "00".repeat(16), note: `secret ${i}` },
        },
      ]);
      await write(tx, event);
    }
  });
}
