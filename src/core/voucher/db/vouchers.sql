-- name: resolve_vouchers(organization_id, code_key?, ticket?, external_ref?)
-- Reads many vouchers, each by code or by ticket and always within one organization. So a voucher of another
-- organization gives the same result as an unknown voucher. Returns one row per wanted entry, in no particular order.
-- The voucher is null if nothing matches. The same snapshot also gives the reservation that is live at the database's
-- time, the redemption of an external reference of the organization, and the reference's version in reference_ends (0
-- if there is none) with the current generation. Only the row of the first wanted entry has the database's time and
-- closed_until, because a time costs more than most columns. OFFSET 0 has the same purpose as in read_locked_vouchers.
SELECT (w.n - 1)::int AS n, CASE WHEN w.n = 1 THEN clock.now END AS "clock.now", CASE WHEN w.n = 1 THEN clock.closed_until END AS "clock.closedUntil", clock.generation, coalesce(e.version, 0) AS "seenEnd", v.id AS "voucher.id", v.code AS "voucher.code", v.serial AS "voucher.serial",
       v.status AS "voucher.status", v.redeemed_at AS "voucher.redeemedAt", voucher_end(v.valid_until, b.issued_until, b.valid_until) AS "voucher.validUntil",
       voucher_suspended(v.suspension, b.suspended_at) AS "voucher.suspended",
       b.retail_price_usd AS "voucher.retailPriceUsd", b.price_usd AS "voucher.priceUsd", b.benefit_months AS "voucher.benefitMonths",
       b.usage_unit_label AS "voucher.usageUnitLabel", p.name AS "voucher.productName", p.key AS "voucher.productKey",
       p.type AS "voucher.type", br.name AS "voucher.brand",
       h.ticket AS "reservation.ticket", h.key_id AS "reservation.keyId", h.started_at AS "reservation.startedAt",
       h.expires_at AS "reservation.expiresAt", h.token_secret_id AS "reservation.tokenSecretId",
       rd.voucher_id AS "redeemed.voucherId", rd.attempt_id AS "redeemed.attemptId", rd.redeem_code AS "redeemed.redeemCode",
       rd.redeemed_at AS "redeemed.redeemedAt"
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
       WITH ORDINALITY AS w (organization_id, code_key, ticket, external_ref, n)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now,
                    (SELECT c.closed_until FROM redemptions_closed AS c WHERE c.singleton) AS closed_until,
                    (SELECT g.generation FROM reference_generation AS g WHERE g.singleton) AS generation) AS clock
  LEFT JOIN LATERAL (
       SELECT c.* FROM vouchers AS c WHERE c.organization_id = w.organization_id AND c.code_key = w.code_key
        UNION ALL
       SELECT t.* FROM reservations AS r JOIN vouchers AS t ON t.id = ANY (ARRAY[r.voucher_id])
        WHERE r.ticket = w.ticket AND r.organization_id = w.organization_id
       ) AS v ON true
  LEFT JOIN batches AS b ON b.id = v.batch_id
  LEFT JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h
    ON h.expires_at > clock.now
  LEFT JOIN LATERAL redemptions_under(w.organization_id, w.external_ref) AS rd ON true
  LEFT JOIN reference_ends AS e ON e.organization_id = w.organization_id AND e.external_ref = w.external_ref;

-- name: lock_free_vouchers(voucher_id)
-- Locks those of the vouchers that no other transaction has locked, in id order, and returns their ids. Returns no
-- state, because a joined row could be older than the lock.
SELECT v.id FROM vouchers AS v WHERE v.id = ANY ($1::text[]) ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_voucher(voucher_id)
-- Locks one voucher. Waits at most for the transaction's lock_timeout.
SELECT FROM vouchers AS v WHERE v.id = $1::text FOR NO KEY UPDATE;

-- name: select_voucher_lockers(among?)
-- The transactions that have locked vouchers in order to change them. With `among`, only transactions of that list. A
-- transaction is named by a virtual id, which is never used again.
SELECT l.virtualtransaction AS id FROM pg_locks AS l
 WHERE l.locktype = 'relation' AND l.relation = 'vouchers'::regclass AND l.mode = 'RowShareLock' AND l.granted
   AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
   AND ($1::text[] IS NULL OR l.virtualtransaction = ANY ($1::text[]));

-- name: read_locked_vouchers(voucher_id)
-- The state of locked vouchers on which changes are decided, and the time that the whole transaction uses. Includes the
-- reservation in state Live, even after its end. Inserting a redemption before closedUntil fails. One row per voucher.
-- A plan that was made while there were no reservations would read all of them. OFFSET 0 prevents this.
SELECT clock.now, clock.closed_until AS "closedUntil", v.id, v.organization_id AS "organizationId", v.code, v.code_key AS "codeKey", v.serial,
       v.status, v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence", encode(v.sealed_hash, 'hex') AS "sealedHash",
       voucher_end(v.valid_until, b.issued_until, b.valid_until) AS "validUntil",
       voucher_suspended(v.suspension, b.suspended_at) AS suspended, v.suspension, b.suspended_at AS "batchSuspendedAt",
       b.retail_price_usd AS "retailPriceUsd", b.price_usd AS "priceUsd", o.sandbox,
       h.ticket AS "reservation.ticket", h.key_id AS "reservation.keyId", h.started_at AS "reservation.startedAt",
       h.expires_at AS "reservation.expiresAt", h.token_secret_id AS "reservation.tokenSecretId"
  FROM unnest($1::text[]) AS w (id)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now,
                    (SELECT c.closed_until FROM redemptions_closed AS c WHERE c.singleton) AS closed_until) AS clock
  JOIN vouchers AS v ON v.id = ANY (ARRAY[w.id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN organizations AS o ON o.id = ANY (ARRAY[v.organization_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h ON true;

-- name: advance_chains(voucher_id, last_sequence_before, last_sequence, sealed_sequence, sealed_hash?)
-- Writes the new chain heads of locked vouchers. Raises VS001 if a head has changed since it was read.
WITH moved AS (
  UPDATE vouchers AS v
     SET last_sequence = w.last_after, sealed_sequence = w.sealed_after, sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])
         AS w (id, last_before, last_after, sealed_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'unchanged chain heads') FROM moved;

-- name: redeem_vouchers(voucher_id, last_sequence_before, last_sequence, sealed_hash?, redeemed_at)
-- Sets locked, Active vouchers to Redeemed and writes their chain heads. Raises VS001 if one is not Active or its chain
-- has changed.
WITH redeemed AS (
  UPDATE vouchers AS v
     SET status = 'Redeemed', pickable = false, redeemed_at = $5::timestamptz, last_sequence = w.last_after,
         sealed_sequence = w.last_after, sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::text[]) AS w (id, last_before, last_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.status = 'Active' AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers with an unchanged chain') FROM redeemed;

-- name: void_vouchers(voucher_id, last_sequence_before, last_sequence, sealed_sequence, sealed_hash?)
-- Sets locked, Active vouchers to Voided and writes their chain heads. Raises VS001 if one is not Active or its chain
-- has changed.
WITH voided AS (
  UPDATE vouchers AS v
     SET status = 'Voided', pickable = false, last_sequence = w.last_after, sealed_sequence = w.sealed_after,
         sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])
         AS w (id, last_before, last_after, sealed_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.status = 'Active' AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers with an unchanged chain') FROM voided;

-- name: extend_vouchers(voucher_id, last_sequence_before, last_sequence, sealed_sequence, sealed_hash?, valid_until)
-- Gives locked, Active vouchers a later end and writes their chain heads. Raises VS001 if one of them is not Active,
-- does not end earlier, or its chain has changed.
WITH extended AS (
  UPDATE vouchers AS v
     SET valid_until = $6::timestamptz, expiry_due = true, last_sequence = w.last_after, sealed_sequence = w.sealed_after,
         sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])
         AS w (id, last_before, last_after, sealed_after, hash_after), batches AS b
   WHERE v.id = ANY (ARRAY[w.id]) AND v.status = 'Active' AND v.last_sequence = w.last_before
     AND b.id = ANY (ARRAY[v.batch_id]) AND voucher_end(v.valid_until, b.issued_until, b.valid_until) < $6::timestamptz
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers with an earlier end and an unchanged chain') FROM extended;

-- name: suspend_vouchers(voucher_id, last_sequence_before, last_sequence, sealed_sequence, sealed_hash?, suspension?)
-- Sets the state of suspension in the histories of locked, Active vouchers, and writes their chain heads. Raises VS001
-- when one is not Active, already has this state, or its chain has changed.
WITH suspended AS (
  UPDATE vouchers AS v
     SET suspension = $6::text, last_sequence = w.last_after, sealed_sequence = w.sealed_after, sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])
         AS w (id, last_before, last_after, sealed_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.status = 'Active' AND v.last_sequence = w.last_before AND v.suspension IS DISTINCT FROM $6::text
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers with another suspension and an unchanged chain') FROM suspended;

-- name: read_chain_heads(voucher_id)
SELECT v.id, v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence", encode(v.sealed_hash, 'hex') AS "sealedHash"
  FROM vouchers AS v WHERE v.id = ANY ($1::text[]);

-- name: find_voucher_sandbox(voucher_id)
-- Whether a voucher belongs to a sandbox organization. No row if there is no such voucher.
SELECT o.sandbox FROM vouchers AS v JOIN organizations AS o ON o.id = ANY (ARRAY[v.organization_id]) WHERE v.id = $1::text;

-- name: select_voucher_names(voucher_id)
-- The names by which people know vouchers: the product, the serial number, and the reference of the redemption.
SELECT v.id, p.name AS "productName", v.serial, r.external_ref AS "externalRef"
  FROM vouchers AS v
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN redemptions AS r ON r.voucher_id = ANY (ARRAY[v.id])
 WHERE v.id = ANY ($1::text[]);
