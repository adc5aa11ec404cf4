import { type AuditContext, withAuditEntry } from "../acts/with-audit-entry.ts";
import { addLeaf, appendLeaves, openLeafBatch, selectUnloggedEvents, writeTlogSlots } from "../core/chain/db/events.ts";
import type { Transaction } from "../platform/db/pool.ts";
import { write } from "../platform/db/transaction.ts";

/** Maximum number of batches in one transaction. Each transaction has one audit entry. */
const BATCHES_MAX = 4;

/**
 * Adds the sealed events that are not in the log to new batches of leaves, in order of voucher and sequence. May be
 * interrupted and started again, and may run while the service is in use.
 * @param onProgress receives the number of events so far. If it throws, the run ends, and committed events stay in the
 * log.
 * @returns the number of added events.
 */
export async function backfillTlog(ctx: AuditContext, onProgress: (events: number) => void): Promise<number> {
  const lastRead = { voucherId: "", sequence: 0 };
  for (let total = 0; ; ) {
    const count = await withAuditEntry(
      ctx,
      { type: "Log", id: "backfill" },
      (tx) => addUnlogged(tx, lastRead, BATCHES_MAX),
      { before: { events: 0 }, after: (events) => ({ events }) },
    );
    total += count;
    onProgress(total);
    if (count === 0) return total;
  }
}

/**
 * Adds sealed events that belong to no batch to new batches, which wait for their positions.
 * @param lastRead the event after which the search begins. The function moves it forward.
 * @returns the number of added events.
 */
export async function addUnlogged(
  tx: Transaction,
  lastRead: { voucherId: string; sequence: number },
  batchesMax: number,
  isWanted: (recordHash: string) => boolean = () => true,
): Promise<number> {
  let added = 0;
  for (let batches = 0; batches < batchesMax; batches++) {
    const read = await selectUnloggedEvents(tx, lastRead);
    const { voucherId, sequence } = read.at(-1) ?? { voucherId: null, sequence: 0 };
    if (voucherId === null) break;
    Object.assign(lastRead, { voucherId, sequence });
    const events = read.filter(({ recordHash }) => isWanted(recordHash));
    if (events.length === 0) continue;
    const batch = await openLeafBatch(tx);
    const slots = events.map(({ recordHash }) => addLeaf(batch, recordHash));
    await write(tx, [...writeTlogSlots(events, slots), ...appendLeaves(batch)]);
    added += events.length;
  }
  return added;
}
