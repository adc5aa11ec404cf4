import { type EventType, nextEvent } from "../../src/core/chain/chain.ts";
import { appendEvents, openSinks } from "../../src/core/chain/seal-events.ts";
import { advanceChains, lockVoucher, readLockedVouchers } from "../../src/core/voucher/db/vouchers.ts";
import type { Transaction } from "../../src/platform/db/pool.ts";
import { write } from "../../src/platform/db/transaction.ts";
import { pooledRandomBytes } from "../../src/platform/random.ts";

/** Appends a sealed event to a voucher's chain. */
export async function appendEvent(
  tx: Transaction,
  id: string,
  eventType: EventType,
  data: Record<string, unknown> = {},
): Promise<void> {
  await lockVoucher(tx, id);
  const { now, vouchers } = await readLockedVouchers(tx, [id]);
  const chains = [...vouchers.values()];
  const events = chains.map((voucher) => nextEvent(pooledRandomBytes, voucher, eventType, now, data));
  const { writes, advances } = appendEvents(await openSinks(tx), chains, [], events);
  await write(tx, [...writes, ...advanceChains(advances)]);
}
