import { addLeaf, appendLeaves, openLeafBatch, selectUnloggedEvents, writeLogSlots } from "../../db/events.ts";
import { write } from "../../db/transaction.ts";
import { type AuditContext, withAuditEntry } from "../audit/with-audit-entry.ts";

/** Most batches in one transaction, which has one audit entry. */
const BATCHES_MAX = 4;

/**
 * Adds the sealed events that are not in the log to new batches of leaves, in order of voucher and sequence. May be interrupted and started
 * again. May run while the service is in use.
 * @param onProgress receives the number of events so far. If it throws, the run ends, and committed events stay in the log.
 * @returns how many events were added.
 */
export async function backfillLog(ctx: AuditContext, onProgress: (events: number) => void): Promise<number> {
  let total = 0;
  let after = { voucherId: "", sequence: 0 };
  let count: number;
  do {
    count = await withAuditEntry(
      ctx,
      { type: "Log", id: "backfill" },
      async (tx) => {
        let added = 0;
        for (let batches = 0; batches < BATCHES_MAX; batches++) {
          const events = await selectUnloggedEvents(tx, after);
          const last = events.at(-1);
          if (last === undefined) break;
          const batch = await openLeafBatch(tx);
          const slots = events.map(({ recordHash }) => addLeaf(batch, recordHash));
          await write(tx, [...writeLogSlots(events, slots), ...appendLeaves(batch)]);
          added += events.length;
          after = last;
        }
        return added;
      },
      { before: { events: 0 }, after: (events) => ({ events }) },
    );
    total += count;
    onProgress(total);
  } while (count > 0);
  return total;
}
