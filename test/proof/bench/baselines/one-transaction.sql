-- name: lock_named(organization_id, code_key?, ticket?)
-- Locks the voucher with a code or a ticket. Joins no table, because joined rows would be read before the lock wait.
SELECT v.id FROM vouchers AS v
 WHERE v.id = coalesce(
         (SELECT c.id FROM vouchers AS c WHERE c.organization_id = $1::text AND c.code_key = $2::text),
         (SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text AND r.organization_id = $1::text))
   FOR NO KEY UPDATE;

-- name: read_named(organization_id, code_key?, ticket?, external_ref?)
-- Reads the locked voucher's state, terms, live reservation and confirmed reference, and the time.
SELECT date_trunc('milliseconds', clock_timestamp()) AS now, v.id, v.code, v.serial, v.status, v.last_sequence AS "lastSequence",
       v.sealed_sequence AS "sealedSequence", encode(v.sealed_hash, 'hex') AS "sealedHash", b.valid_until AS "validUntil",
       b.retail_price_usd AS "retailPriceUsd", b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths",
       p.name AS "productName", p.key AS "productKey", h.ticket, h.key_id AS "keyId", h.started_at AS "startedAt",
       h.expires_at AS "expiresAt", h.token_secret_id AS "tokenSecretId", rd.attempt_id AS "attemptId"
  FROM vouchers AS v
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live') AS h ON true
  LEFT JOIN redemptions AS rd ON rd.organization_id = ANY (ARRAY[v.organization_id]) AND rd.external_ref = $4::text
 WHERE v.id = coalesce(
         (SELECT c.id FROM vouchers AS c WHERE c.organization_id = $1::text AND c.code_key = $2::text),
         (SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text AND r.organization_id = $1::text));

-- name: write_redemption(voucher_id, organization_id, key_id, attempt_id, ticket?, redeem_code, external_ref, redeemed_at, sequence, previous_hash,
--       record_hash, payload)
-- Writes the redemption, its sealed event with its leaf for the log, and the voucher's state in one statement.
WITH redemption AS (
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
  VALUES ($8::timestamptz, $1::text, $2::text, $3::text, $4::text, $5::text, $6::text, $7::text)
), batch AS (
  INSERT INTO log_batches (id, leaves, hashes) VALUES (nextval('log_batch_ids'), 1, decode($11::text, 'hex')) RETURNING id
), event AS (
  INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, actor_connected_id, previous_hash, record_hash,
                              payload, log_slot)
  SELECT $8::timestamptz, $9::int, $1::text, 'Sealed', 'voucher.instance.redeemed', $3::text, decode($10::text, 'hex'),
         decode($11::text, 'hex'), $12::text, b.id << 12
    FROM batch AS b
)
UPDATE vouchers AS v
   SET status = 'Redeemed', pickable = false, redeemed_at = $8::timestamptz, last_sequence = $9::int, sealed_sequence = $9::int,
       sealed_hash = decode($11::text, 'hex')
 WHERE v.id = $1::text AND v.status = 'Active' AND v.last_sequence = $9::int - 1;

-- name: look_up(organization_id, code_key?)
-- Reads the answer of a look-up by code.
SELECT clock.now, v.id, v.code, v.serial, v.status, v.redeemed_at AS "redeemedAt", b.valid_until AS "validUntil",
       b.retail_price_usd AS "retailPriceUsd", b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths",
       b.usage_unit_label AS "usageUnitLabel", p.name AS "productName", p.key AS "productKey", p.type, br.name AS brand,
       h.ticket, h.key_id AS "keyId", h.started_at AS "startedAt", h.expires_at AS "expiresAt",
       h.token_secret_id AS "tokenSecretId"
  FROM (SELECT clock_timestamp() AS now) AS clock
  JOIN vouchers AS v ON v.organization_id = $1::text AND v.code_key = $2::text
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h
    ON h.expires_at > clock.now;
