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
  const { rows } = await db.query(
    `SELECT v.status, v.last_sequence, v.sealed_sequence, d.external_ref, d.ticket, d.redeem_code, d.redeemed_at,
            h.ticket AS live_ticket
       FROM vouchers v LEFT JOIN redemptions d ON d.voucher_id = v.id
       LEFT JOIN reservations h ON h.voucher_id = v.id AND h.state = 'Live' WHERE v.id = $1`,
    [voucherId],
  );
  const events = await db.query<{ sequence: number; event_type: string; seal_status: string; payload: string | null }>(
    "SELECT sequence, event_type, seal_status, payload FROM voucher_events WHERE voucher_id = $1 ORDER BY sequence",
    [voucherId],
  );
  const [row] = rows;
  if (row === undefined || rows.length > 1) throw new Error(`${rows.length} rows about voucher ${voucherId}`);
  return {
    status: row.status,
    lastSequence: row.last_sequence,
    sealedSequence: row.sealed_sequence,
    redemption:
      row.external_ref === null
        ? null
        : {
            externalRef: row.external_ref,
            ticket: row.ticket,
            redeemCode: row.redeem_code,
            redeemedAt: row.redeemed_at,
          },
    liveTicket: row.live_ticket,
    events: events.rows.map((event) => ({
      sequence: event.sequence,
      eventType: event.event_type,
      sealStatus: event.seal_status,
      data: event.payload === null ? null : JSON.parse(event.payload).data,
    })),
  };
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
    `SELECT state, started_at AS "startedAt", expires_at AS "expiresAt", ended_at AS "endedAt", end_reason AS "endReason"
       FROM reservations WHERE ticket = $1`,
    [ticket],
  );
  if (rows[0] === undefined) throw new Error(`there is no reservation ${ticket}`);
  return rows[0];
}
