import type pg from "pg";
import type { Transaction } from "../../platform/db/pool.ts";
import { type Decided, isLockTimeout, readThenWrite, waitForLocks } from "../../platform/db/transaction.ts";
import { LOCK_CONNECTIONS } from "../callers/caller-kinds.ts";
import { lockFreeVouchers, lockVoucher } from "../voucher/db/vouchers.ts";
import { GroupCommitter, type GroupCommitterOptions, type Undecided } from "./group-committer.ts";

interface VoucherCommitterOptions<Item, State, Result>
  extends Omit<GroupCommitterOptions<Item, Result>, "commit" | "groupOf" | "slowConnections"> {
  pool: pg.Pool;
  /**
   * Reads the state that `decide` needs, in statements that follow the locking statement. Must send all of them before
   * it awaits any. Reads the state of all items, because it is not yet known which vouchers will be locked.
   */
  read: (tx: Transaction, items: Item[]) => Promise<State>;
  /** Decides items of locked vouchers. Returns one result per item, in order, and the statements to write. */
  decide: (items: Item[], state: State, tx: Transaction) => Promise<Decided<Result[]>>;
  /** Called with the error of each failed transaction, before the transaction is tried again. */
  onFailed?: (error: unknown) => void;
}

/**
 * Opens a group committer for items that need the row of one voucher: reserve and release calls, redemptions and seals.
 * `voucherId` is null for canaries, which are jobs that redeem nothing.
 */
export function openVoucherCommitter<
  Item extends { voucherId: string | null },
  State,
  Result extends object | number | null,
>({
  pool,
  read,
  decide,
  onFailed,
  ...options
}: VoucherCommitterOptions<Item, State, Result>): GroupCommitter<Item, Result> {
  const commit = async (items: Item[], waitMs: number | null): Promise<(Result | Undecided)[]> => {
    const voucherIds = [...new Set(items.map((item) => item.voucherId))].filter((id) => id !== null);
    let mine: ReadonlySet<string> = new Set();
    const isLocked = ({ voucherId }: Item) => voucherId === null || mine.has(voucherId);
    const lock = async (tx: Transaction) => {
      const [voucherId] = voucherIds;
      const waits = waitMs !== null && voucherId !== undefined;
      const locked = waits ? await lockVoucher(tx, voucherId) : await lockFreeVouchers(tx, voucherIds);
      if (locked === false) throw new Error(`there is no voucher ${voucherId}`);
      mine = locked === true ? new Set(voucherIds) : locked;
    };
    const results = await readThenWrite(
      pool,
      // Awaits all statements in one `Promise.all`, which throws the error of the statement that failed first.
      (tx) => Promise.all([waitMs === null ? null : waitForLocks(tx, waitMs), lock(tx), read(tx, items)]),
      async ([, , state], tx) => {
        const lockedItems = items.filter(isLocked);
        const decision: Decided<Result[]> =
          lockedItems.length > 0 ? await decide(lockedItems, state, tx) : { result: [], writes: [] };
        const { result } = decision;
        return { ...decision, result: new Map(lockedItems.map((item, index) => [item, result[index] as Result])) };
      },
    ).catch((error) => {
      onFailed?.(error);
      if (isLockTimeout(error)) return null;
      throw error;
    });
    return items.map((item) => {
      if (results?.has(item)) return results.get(item) as Result;
      return results === null && isLocked(item) ? "crossed" : "locked";
    });
  };
  const groupOf = ({ voucherId }: Item) => voucherId ?? "";
  return new GroupCommitter({ ...options, commit, groupOf, slowConnections: LOCK_CONNECTIONS.vouchers });
}
