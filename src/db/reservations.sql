-- name: open_holds
-- Opens holds on locked vouchers that are Active and still valid, and leaves out a voucher that has a Live row and a ticket that exists:
-- the caller decided on state read under the lock, and counts.
-- $1 ticket text[], $2 voucher_id text[], $3 organization_id text[], $4 key_id text[], $5 started_at timestamptz[],
-- $6 expires_at timestamptz[], $7 token_secret_id text[]
INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
SELECT w.started_at, w.expires_at, w.ticket, w.voucher_id, w.organization_id, w.key_id, 'Live', w.token_secret_id
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[])
       AS w (ticket, voucher_id, organization_id, key_id, started_at, expires_at, token_secret_id)
  JOIN vouchers AS v ON v.id = w.voucher_id
  JOIN batches AS b ON b.id = v.batch_id
 WHERE v.status = 'Active' AND b.valid_until > w.started_at
    ON CONFLICT DO NOTHING;

-- name: end_holds
-- Ends Live holds of locked vouchers, and returns no row for one that is not Live. The moment of an Expired one is its own end.
-- $1 ticket text[], $2 state text[], $3 end_reason text[] or nulls, $4 ended_at timestamptz
UPDATE reservations AS r
   SET state = w.state, end_reason = w.end_reason,
       ended_at = CASE WHEN w.state = 'Expired' THEN r.expires_at ELSE $4::timestamptz END
  FROM unnest($1::text[], $2::text[], $3::text[]) AS w (ticket, state, end_reason)
 WHERE r.ticket = w.ticket AND r.state = 'Live';

-- name: find_hold_voucher
-- The voucher that a ticket of this organization was given for, whatever became of the hold.
-- $1 ticket text, $2 organization_id text
SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $1::text AND r.organization_id = $2::text;
