import type pg from "pg";
import type { History } from "./history.ts";
import type { SteppedClock } from "./stepped-clock.ts";

/** A row of `redemptions`. */
export interface RecordedRedemption {
  voucherId: string;
  organizationId: string;
  keyId: string;
  ticket: string | null;
  redeemCode: string;
  externalRef: string;
  redeemedAtMs: number;
  /** Whether an operator erased the reference. Even then, `externalRef` is the text from before the erasure. */
  wasErased?: boolean;
}

/** A row of `batches`, and how many vouchers it has in each state. */
export interface RecordedBatch {
  id: string;
  vouchers: number;
  voided: number;
  active: number;
}

/** A row of `reservations`. */
export interface RecordedReservation {
  ticket: string;
  voucherId: string;
  keyId: string;
  state: "Live" | "Consumed" | "Released" | "Expired";
  startedAtMs: number;
  expiresAtMs: number;
  /** Null while the reservation is Live. */
  endedAtMs: number | null;
}

/** A row of `vouchers`. */
export interface RecordedVoucher {
  id: string;
  status: "Active" | "Redeemed" | "Voided";
  isSuspended: boolean;
}

/** A row of `api_keys` with a daily limit. */
export interface RecordedCap {
  keyId: string;
  maxPerDay: number;
}

/** A claim or purchase with the time of its event. */
export interface RecordedAcquisition {
  /** The key from `acquisitionOf`. */
  acquisition: string;
  voucherId: string;
  batchId: string;
  acquiredAtMs: number;
}

/** The time of the records: after every answer and every change. Milliseconds of the monotonic clock. */
export const AT_END_MS = Number.MAX_VALUE;

/** The content of the database at the end of a run, for comparison with the answers. */
export type Records = ReturnType<typeof toRecords>;

/**
 * Makes maps of the rows.
 * @param clock the database's clock, from which the rows' times come. The rules convert them to times of the host's
 *   clock. If a step of the clock makes a time unclear, they accept either answer.
 */
export function toRecords(
  clock: SteppedClock,
  rows: {
    vouchers?: RecordedVoucher[];
    redemptions?: RecordedRedemption[];
    reservations?: RecordedReservation[];
    acquisitions?: RecordedAcquisition[];
    batches?: RecordedBatch[];
    endedContracts?: string[];
    caps?: RecordedCap[];
  },
) {
  const { vouchers = [], redemptions = [], reservations = [], acquisitions = [], batches = [], caps = [] } = rows;
  return {
    clock,
    vouchers: new Map(vouchers.map((row) => [row.id, row])),
    redemptionsByRef: new Map(redemptions.map((row) => [`${row.organizationId} ${row.externalRef}`, row])),
    redemptionsByVoucher: new Map(redemptions.map((row) => [row.voucherId, row])),
    reservationsByTicket: new Map(reservations.map((row) => [row.ticket, row])),
    reservationsByVoucher: Map.groupBy(reservations, (row) => row.voucherId),
    acquisitions: new Map(acquisitions.map((row) => [row.acquisition, row])),
    batches: new Map(batches.map((row) => [row.id, row])),
    endedContracts: new Set(rows.endedContracts),
    caps: new Map(caps.map(({ keyId, maxPerDay }) => [keyId, maxPerDay])),
  };
}

/**
 * Reads the records from the database.
 * @param history has the original texts of erased references.
 */
export async function readRecords(db: pg.Pool, clock: SteppedClock, history: History | null = null): Promise<Records> {
  const msOf = (column: string) => `(extract(epoch FROM ${column}) * 1000)::float8`;
  const vouchers = await db.query<RecordedVoucher>(
    `SELECT id, status, suspension IS NOT NULL AS "isSuspended" FROM vouchers`,
  );
  const redemptions = await db.query<RecordedRedemption>(
    `SELECT voucher_id AS "voucherId", organization_id AS "organizationId", key_id AS "keyId", ticket,
            redeem_code AS "redeemCode", external_ref AS "externalRef", ${msOf("redeemed_at")} AS "redeemedAtMs"
       FROM redemptions`,
  );
  const reservations = await db.query<RecordedReservation>(
    `SELECT ticket, voucher_id AS "voucherId", key_id AS "keyId", state, ${msOf("started_at")} AS "startedAtMs",
            ${msOf("expires_at")} AS "expiresAtMs", ${msOf("ended_at")} AS "endedAtMs"
       FROM reservations`,
  );
  const acquisitions = await db.query<RecordedAcquisition>(
    `SELECT acquisition, voucher_id AS "voucherId", v.batch_id AS "batchId", ${msOf("e.occurred_at")} AS "acquiredAtMs"
       FROM (SELECT 'claim ' || user_id || ' ' || product_id AS acquisition, voucher_id FROM claims
             UNION ALL SELECT 'purchase ' || user_id || ' ' || payment_ref, voucher_id FROM purchases) AS t
       JOIN vouchers v ON v.id = voucher_id
       JOIN voucher_events e USING (voucher_id)
      WHERE e.event_type IN ('voucher.instance.claimed', 'voucher.instance.bought')`,
  );
  const batches = await db.query<RecordedBatch>(
    `SELECT batch_id AS id, count(*)::int AS vouchers, count(*) FILTER (WHERE status = 'Voided')::int AS voided,
            count(*) FILTER (WHERE status = 'Active')::int AS active
       FROM vouchers GROUP BY batch_id`,
  );
  const ended = await db.query<{ id: string }>("SELECT id FROM referrer_contracts WHERE status = 'Ended'");
  const caps = await db.query<RecordedCap>(
    `SELECT id AS "keyId", max_per_day AS "maxPerDay" FROM api_keys WHERE max_per_day IS NOT NULL`,
  );
  const plainOf = new Map(history?.of("erase").map(({ ask }) => [ask.form, ask.externalRef]));
  for (const row of redemptions.rows) {
    const plain = plainOf.get(row.externalRef);
    if (plain !== undefined) Object.assign(row, { externalRef: plain, wasErased: true });
  }
  return toRecords(clock, {
    vouchers: vouchers.rows,
    redemptions: redemptions.rows,
    reservations: reservations.rows,
    acquisitions: acquisitions.rows,
    batches: batches.rows,
    endedContracts: ended.rows.map(({ id }) => id),
    caps: caps.rows,
  });
}

/** Returns when a reservation ended or will end, even if its row is still Live. */
export function endOf(reservation: RecordedReservation): number {
  return Math.min(reservation.endedAtMs ?? reservation.expiresAtMs, reservation.expiresAtMs);
}
