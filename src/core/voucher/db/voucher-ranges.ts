import {
  arrayOf,
  boolean,
  integer,
  orNull,
  type Row,
  real,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import { LATEST, withLatest } from "../../../platform/db/database-clock.ts";
import type { Queryable } from "../../../platform/db/pool.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { StoredStatus, Suspension } from "../voucher.ts";
import { CHAIN_HEAD } from "./vouchers.ts";

/** A suspended or resumed batch with vouchers whose histories lack the event about it. */
const DUE = { batchId: text, dueAt: timestamptz };
export type DueSuspension = Row<typeof DUE>;

export const sql = new Statements(new URL("./voucher-ranges.sql", import.meta.url));

export const selectVouchersOfBatch = sql.rows(
  "select_vouchers_of_batch",
  {
    id: text,
    code: text,
    serial: integer,
    status: textOf<StoredStatus>(),
  },
  { batchId: text, after: integer, limit: integer },
);
export const selectActiveOfBatch = sql.rows(
  "select_active_of_batch",
  { id: text, serial: integer },
  {
    batchId: text,
    after: integer,
    limit: integer,
    endsBefore: orNull(timestamptz),
    suspension: orNull(textOf<Suspension | "none">()),
  },
);
export const findVoucherInOrganization = sql.value(
  "find_voucher_in_organization",
  { id: text },
  { organizationId: text, codeKey: orNull(text) },
);
export const findRangeEnd = sql.requiredValue(
  "find_range_end",
  { lastId: orNull(text) },
  { after: text, limit: integer },
);
export const selectChainHeadsOfRange = sql.rows(
  "select_chain_heads_of_range",
  { voucherId: text, ...CHAIN_HEAD },
  { after: text, last: text },
);
/** Null if no batch has expiries to record, or all are locked. Expiries up to serial `recordedTo` are recorded. */
export const lockExpiredBatch = withLatest(
  sql.row(
    "lock_expired_batch",
    { batchId: text, recordedTo: integer, voucherCount: integer },
    { only: orNull(arrayOf(text)), except: arrayOf(text), ...LATEST },
  ),
);
export const lockUnrecordedExpiries = sql.values(
  "lock_unrecorded_expiries",
  { id: text },
  { batchId: text, after: integer, last: integer },
);
export const advanceExpiry = sql.requiredValue(
  "advance_expiry",
  { recordedTo: integer },
  { batchId: text, after: integer, last: integer, damaged: arrayOf(text) },
);
export const lockOwnExpiries = withLatest(sql.values("lock_own_expiries", { id: text }, { limit: integer, ...LATEST }));
export const endOwnExpiries = sql.execute("end_own_expiries", { voucherId: arrayOf(text) });
/** Returns false if the batch is already suspended. */
export const suspendBatchRow = sql.executeOne("suspend_batch", { id: text, reason: text, followMs: integer });
/** Returns false if the batch is not suspended. */
export const resumeBatchRow = sql.executeOne("resume_batch", {
  id: text,
  reason: orNull(text),
  followMs: integer,
});
export const isBatchSuspended = sql.value("is_batch_suspended", { suspended: boolean }, { batchId: text });
export const selectDueSuspensions = sql.rows("select_due_suspensions", DUE, { limit: integer });
export const lockSuspension = sql.row("lock_suspension", { suspendedAt: orNull(timestamptz) }, { batchId: text });
export const endSuspensionWalk = sql.execute("end_suspension_walk", DUE);
export const readSuspensionReason = sql.requiredValue(
  "read_suspension_reason",
  { reason: orNull(text) },
  { voucherId: text },
);
export const estimateVoucherCount = sql.requiredValue("estimate_voucher_count", { estimate: real });
export const selectOrganizationsWithBrands = sql.values("select_organizations_with_brands", { id: text });
const findVouchers = sql.rows(
  "find_vouchers",
  {
    now: timestamptz,
    sandbox: boolean,
    id: text,
    code: text,
    serial: integer,
    organizationId: text,
    batchId: text,
    status: textOf<StoredStatus>(),
    redeemedAt: orNull(timestamptz),
    validUntil: timestamptz,
    suspended: boolean,
    suspendedBy: orNull(textOf<"voucher" | "batch">()),
    /** Why the batch is suspended. Null if it is not. */
    batchReason: orNull(text),
    /** The payload of the voucher's last suspended event. */
    suspendedPayload: orNull(text),
    productName: text,
    productKey: text,
    brand: text,
    externalRef: orNull(text),
    redeemCode: orNull(text),
  },
  {
    organizationIds: arrayOf(text),
    codeKey: orNull(text),
    ticket: orNull(text),
    voucherId: orNull(text),
    externalRef: orNull(text),
    redeemCode: orNull(text),
    batchId: orNull(text),
    serial: orNull(integer),
    limit: integer,
  },
);

/** The criteria of a search for vouchers: one field, or `batchId` and `serial`. The others are null. */
export interface VoucherCriteria {
  codeKey: string | null;
  ticket: string | null;
  voucherId: string | null;
  externalRef: string | null;
  redeemCode: string | null;
  batchId: string | null;
  serial: number | null;
}

/** At most `limit` vouchers of these organizations that meet the criteria, and the database's time. */
export function selectVouchersBy(
  db: Queryable,
  organizationIds: readonly string[],
  by: VoucherCriteria,
  limit: number,
) {
  return findVouchers(db, { ...by, organizationIds, limit });
}
