-- name: lock_named
-- Locks the voucher that a code or a ticket names. Nothing is decided here: a joined row would show the state from before a lock wait.
-- $1 organization_id text, $2 code_key text or null, $3 ticket text or null
SELECT v.id FROM vouchers AS v
 WHERE v.id = coalesce(
         (SELECT c.id FROM vouchers AS c WHERE c.organization_id = $1::text AND c.code_key = $2::text),
         (SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text AND r.organization_id = $1::text))
   FOR NO KEY UPDATE;

-- name: read_named
-- What decides a move of the voucher that is locked by now and what its answer says: state, terms, hold, confirmed reference, time.
-- $1 organization_id text, $2 code_key text or null, $3 ticket text or null, $4 external_ref text or null
SELECT date_trunc('milliseconds', clock_timestamp()) AS now, v.id AS voucher_id, v.organization_id, v.code, v.serial, v.status,
       v.last_sequence, v.sealed_sequence, encode(v.sealed_hash, 'hex') AS sealed_hash, b.valid_until, b.retail_price_usd, b.price_usd,
       b.benefit_months, p.name AS product_name, p.key AS product_key,
       h.ticket AS hold_ticket, h.key_id AS hold_key_id, h.started_at AS hold_started_at, h.expires_at AS hold_expires_at,
       h.token_secret_id AS hold_token_secret_id, rd.attempt_id, rd.redeem_code, rd.redeemed_at
  FROM vouchers AS v
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h ON true
  LEFT JOIN redemptions AS rd ON rd.organization_id = ANY (ARRAY[v.organization_id]) AND rd.external_ref = $4::text
 WHERE v.id = coalesce(
         (SELECT c.id FROM vouchers AS c WHERE c.organization_id = $1::text AND c.code_key = $2::text),
         (SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text AND r.organization_id = $1::text));

-- name: write_burn
-- Writes the burn, its sealed event and the voucher in one statement.
-- $1 voucher_id text, $2 organization_id text, $3 key_id text, $4 attempt_id text, $5 ticket text or null, $6 redeem_code text,
-- $7 external_ref text, $8 redeemed_at timestamptz, $9 sequence int, $10 previous_hash text hex, $11 record_hash text hex,
-- $12 payload text
WITH redemption AS (
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
  VALUES ($8::timestamptz, $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text)
), event AS (
  INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, actor_connected_id, previous_hash, record_hash,
                              payload)
  VALUES ($8::timestamptz, $9::int, $1::text, 'Sealed', 'voucher.instance.redeemed', $3::text, decode($10::text, 'hex'),
          decode($11::text, 'hex'), $12::text)
)
UPDATE vouchers AS v
   SET status = 'Redeemed', pickable = false, redeemed_at = $8::timestamptz, last_sequence = $9::int, sealed_sequence = $9::int,
       sealed_hash = decode($11::text, 'hex')
 WHERE v.id = $1::text AND v.status = 'Active' AND v.last_sequence = $9::int - 1;

-- name: write_redemption
-- The same in three: the burn,
-- $1 redeemed_at timestamptz, $2 voucher_id text, $3 organization_id text, $4 key_id text, $5 attempt_id text, $6 ticket text or null,
-- $7 redeem_code text, $8 external_ref text
INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
VALUES ($1::timestamptz, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text, $8::text);

-- name: write_event
-- its sealed event,
-- $1 occurred_at timestamptz, $2 voucher_id text, $3 key_id text, $4 sequence int, $5 previous_hash text hex, $6 record_hash text hex,
-- $7 payload text
INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, actor_connected_id, previous_hash, record_hash,
                            payload)
VALUES ($1::timestamptz, $4::int, $2::text, 'Sealed', 'voucher.instance.redeemed', $3::text, decode($5::text, 'hex'),
        decode($6::text, 'hex'), $7::text);

-- name: write_voucher
-- and the voucher.
-- $1 redeemed_at timestamptz, $2 voucher_id text, $3 sequence int, $4 sealed_hash text hex
UPDATE vouchers AS v
   SET status = 'Redeemed', pickable = false, redeemed_at = $1::timestamptz, last_sequence = $3::int, sealed_sequence = $3::int,
       sealed_hash = decode($4::text, 'hex')
 WHERE v.id = $2::text AND v.status = 'Active' AND v.last_sequence = $3::int - 1;

-- name: look_up
-- What a look-up by code answers.
-- $1 organization_id text, $2 code_key text
SELECT clock.now, v.id, v.code, v.serial, v.status, v.redeemed_at, b.valid_until, b.retail_price_usd, b.price_usd, b.benefit_months,
       b.usage_unit_label, p.name AS product_name, p.key AS product_key, p.type, br.name AS brand,
       h.ticket AS hold_ticket, h.key_id AS hold_key_id, h.started_at AS hold_started_at, h.expires_at AS hold_expires_at
  FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock
  JOIN vouchers AS v ON v.organization_id = $1::text AND v.code_key = $2::text
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h
    ON h.expires_at > clock.now;
