import { arrayOf, bigint, integer, text } from "../../../platform/db/columns.ts";
import { Statements } from "../../../platform/db/statements.ts";

export const sql = new Statements(new URL("./sandbox.sql", import.meta.url));

/** @throws DatabaseError 23001 for a live organization, 54000 for one with too many live reservations. */
export const moveSandbox = sql.requiredRow(
  "advance_sandbox",
  {
    /** Reservations that the move has ended, and their vouchers in the same order. */
    endedTickets: arrayOf(text),
    endedVoucherIds: arrayOf(text),
    /** Batches that the move has expired. The expiry events of their vouchers are not inserted yet. */
    expiredBatchIds: arrayOf(text),
    /** Number of vouchers that the move has expired: active vouchers of these batches, and extended vouchers. */
    vouchersExpired: bigint,
  },
  { organizationId: text, seconds: integer, keyId: text, osUser: text, host: text },
);
