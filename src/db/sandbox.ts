import { arrayOf, bigint, boolean, type Row, text } from "./columns.ts";
import type { Queryable, Transaction } from "./pool.ts";
import { loadStatements, readRequiredRow, readRow } from "./statements.ts";

const ADVANCE = {
  /** Reservations that the move has ended, and their vouchers in the same order. */
  endedTickets: arrayOf(text),
  endedVoucherIds: arrayOf(text),
  /** Batches that the move has expired. Their vouchers' expiry events are not inserted yet. */
  expiredBatchIds: arrayOf(text),
  /** Number of active vouchers in these batches. */
  vouchersExpired: bigint,
};

export const sql = loadStatements(new URL("./sandbox.sql", import.meta.url), {
  advance_sandbox: ADVANCE,
  find_voucher_sandbox: { sandbox: boolean },
});

/** How far to move the times of a sandbox organization, and who does it, for the audit entry. */
interface SandboxMove {
  organizationId: string;
  seconds: number;
  keyId: string;
  osUser: string;
  host: string;
}

/**
 * Moves the future times of a sandbox organization earlier and inserts the audit entry.
 * @throws DatabaseError 23001 for a live organization, 54000 for one with too many live reservations.
 */
export function moveSandbox(tx: Transaction, move: SandboxMove): Promise<Row<typeof ADVANCE>> {
  const { organizationId, seconds, keyId, osUser, host } = move;
  return readRequiredRow(tx, sql.advance_sandbox, [organizationId, seconds, keyId, osUser, host]);
}

/** Whether a voucher belongs to a sandbox organization, or null when there is no such voucher. */
export async function findVoucherSandbox(db: Queryable, voucherId: string): Promise<boolean | null> {
  return (await readRow(db, sql.find_voucher_sandbox, [voucherId]))?.sandbox ?? null;
}
