import type pg from "pg";
import type { History } from "./history.ts";

/** A burn as the table has it. */
export interface RecordedBurn {
  voucherId: string;
  organizationId: string;
  keyId: string;
  ticket: string | null;
  redeemCode: string;
  externalRef: string;
  redeemedAtMs: number;
}

/** A hold as the table has it. */
export interface RecordedHold {
  ticket: string;
  voucherId: string;
  keyId: string;
  state: "Live" | "Consumed" | "Released" | "Expired";
  startedAtMs: number;
  expiresAtMs: number;
  /** Null while Live. */
  endedAtMs: number | null;
}

/** What the database says in the end, ready to be compared with what partners were told. */
export interface Records {
  burnsByRef: Map<string, RecordedBurn>;
  burnsByVoucher: Map<string, RecordedBurn>;
  holdsByTicket: Map<string, RecordedHold>;
  holdsByVoucher: Map<string, RecordedHold[]>;
}

export async function readRecords(db: pg.Pool): Promise<Records> {
  const burns = await db.query<RecordedBurn>(
    `SELECT voucher_id AS "voucherId", organization_id AS "organizationId", key_id AS "keyId", ticket,
            redeem_code AS "redeemCode", external_ref AS "externalRef",
            (extract(epoch FROM redeemed_at) * 1000)::float8 AS "redeemedAtMs"
       FROM redemptions`,
  );
  const holds = await db.query<RecordedHold>(
    `SELECT ticket, voucher_id AS "voucherId", key_id AS "keyId", state,
            (extract(epoch FROM started_at) * 1000)::float8 AS "startedAtMs",
            (extract(epoch FROM expires_at) * 1000)::float8 AS "expiresAtMs",
            (extract(epoch FROM ended_at) * 1000)::float8 AS "endedAtMs"
       FROM reservations`,
  );
  return {
    burnsByRef: new Map(burns.rows.map((burn) => [`${burn.organizationId} ${burn.externalRef}`, burn])),
    burnsByVoucher: new Map(burns.rows.map((burn) => [burn.voucherId, burn])),
    holdsByTicket: new Map(holds.rows.map((hold) => [hold.ticket, hold])),
    holdsByVoucher: Map.groupBy(holds.rows, (hold) => hold.voucherId),
  };
}

/**
 * Until when a hold may have been seen as live: to its time, or to the first answer that told of its end. The end's own moment is
 * read before its transaction commits, and a commit may take as long as a server is frozen. Exact only when it is before `atMs`.
 */
export function seenUntil(hold: RecordedHold, history: History, atMs: number): number {
  const end = endOf(hold);
  if (end >= atMs) return end;
  const released = history
    .of("release")
    .filter(({ ask, status, body }) => ask.ticket === hold.ticket && status === 200 && body.released === true);
  const burnt = history
    .of("redeem")
    .filter(({ status, body }) => status === 200 && body.voucherInstanceId === hold.voucherId);
  return Math.min(hold.expiresAtMs, ...[...released, ...burnt].map(({ endedAtMs }) => endedAtMs));
}

/** When a hold stopped counting, whatever its row says. */
export function endOf(hold: RecordedHold): number {
  return Math.min(hold.endedAtMs ?? hold.expiresAtMs, hold.expiresAtMs);
}
