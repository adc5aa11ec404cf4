import type pg from "pg";

/** The state of one voucher in the database. */
export interface Recorded {
  status: string;
  lastSequence: number;
  sealedSequence: number;
  redemption: { externalRef: string; ticket: string | null; redeemCode: string; redeemedAt: Date } | null;
  /** The ticket of the reservation in state Live, or null. */
  liveTicket: string | null;
  events: { sequence: number; eventType: string; sealStatus: string; data: Record<string, unknown> | null }[];
}

export async function readRecorded(db: pg.Pool, voucherId: string): Promise<Recorded> {
  const { rows } = await db.query<Omit<Recorded, "redemption" | "events"> & Recorded["redemption"]>(
    `SELECT v.status, v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence",
            h.ticket AS "liveTicket", d.external_ref AS "externalRef", d.ticket,
            d.redeem_code AS "redeemCode", d.redeemed_at AS "redeemedAt"
       FROM vouchers v LEFT JOIN redemptions d ON d.voucher_id = v.id
       LEFT JOIN reservations h ON h.voucher_id = v.id AND h.state = 'Live' WHERE v.id = $1`,
    [voucherId],
  );
  const { rows: events } = await db.query<Recorded["events"][number]>(
    `SELECT sequence, event_type AS "eventType", seal_status AS "sealStatus", payload::jsonb -> 'data' AS data
       FROM voucher_events WHERE voucher_id = $1 ORDER BY sequence`,
    [voucherId],
  );
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`${rows.length} rows about voucher ${voucherId}`);
  const { externalRef, ticket, redeemCode, redeemedAt, ...voucher } = row;
  const redemption = externalRef === null ? null : { externalRef, ticket, redeemCode, redeemedAt };
  return { ...voucher, redemption, events };
}

export async function findBatchOf(db: pg.Pool, voucherId: string): Promise<string> {
  const { rows } = await db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucherId]);
  return rows[0].batch_id;
}

export async function readReservation(
  db: pg.Pool,
  ticket: string,
): Promise<{ state: string; startedAt: Date; expiresAt: Date; endedAt: Date | null; endReason: string | null }> {
  const { rows } = await db.query(
    `SELECT state, started_at AS "startedAt", expires_at AS "expiresAt", ended_at AS "endedAt",
            end_reason AS "endReason"
       FROM reservations WHERE ticket = $1`,
    [ticket],
  );
  if (rows[0] === undefined) throw new Error(`there is no reservation ${ticket}`);
  return rows[0];
}
