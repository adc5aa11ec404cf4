-- name: resolve_vouchers
-- Reads many vouchers, each by code or by ticket and always within one organization, so that a voucher of another organization gives the
-- same result as an unknown one. One row per wanted entry, in no order; the voucher is null where nothing matches. The same snapshot also
-- gives the database's time, the reservation that is live at that time, the redemption of an external reference of the organization, and the
-- version of the reference's last end (0 without one) with the generation of ends.
-- $1 organization_id text[], $2 code_key text[], $3 ticket text[], $4 external_ref text[]: equally long; null where unused
SELECT (w.n - 1)::int AS n, clock.now, clock.generation, coalesce(e.version, 0) AS "seenEnd", v.id AS "voucher.id", v.code AS "voucher.code", v.serial AS "voucher.serial",
       v.status AS "voucher.status", v.redeemed_at AS "voucher.redeemedAt", b.valid_until AS "voucher.validUntil",
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
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live') AS h
    ON h.expires_at > clock.now
  LEFT JOIN redemptions AS rd ON rd.organization_id = w.organization_id AND rd.external_ref = w.external_ref
  LEFT JOIN reference_ends AS e ON e.organization_id = w.organization_id AND e.external_ref = w.external_ref;

-- name: lock_free_vouchers
-- Locks the vouchers that no other transaction has locked, in id order, and returns their ids. Returns no state, because a joined row could be
-- older than the lock.
-- $1 voucher_id text[]
SELECT v.id FROM vouchers AS v WHERE v.id = ANY ($1::text[]) ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_voucher
-- Locks one voucher, waiting up to the transaction's lock_timeout.
-- $1 voucher_id text
SELECT v.id FROM vouchers AS v WHERE v.id = $1::text FOR NO KEY UPDATE;

-- name: read_locked_vouchers
-- The state of locked vouchers on which changes are decided, and the one time that the whole transaction uses. Includes the reservation in
-- state Live, even past its end. Inserting a redemption before closedUntil fails; `now` is before closedUntil only after the clock was set back.
-- One row per voucher. OFFSET 0 keeps a plan that was made while there were no reservations from reading all of them.
-- $1 voucher_id text[]
SELECT clock.now, clock.closed_until AS "closedUntil", v.id, v.organization_id AS "organizationId", v.code, v.serial, v.status, v.last_sequence AS "lastSequence",
       v.sealed_sequence AS "sealedSequence", encode(v.sealed_hash, 'hex') AS "sealedHash", b.valid_until AS "validUntil",
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

-- name: advance_chains
-- Writes the new chain heads of locked vouchers. Raises VS001 when a head has changed since it was read.
-- $1 voucher_id text[], $2 last_sequence int[] before, $3 last_sequence int[] after, $4 sealed_sequence int[] after,
-- $5 sealed_hash text[] after, hex
WITH moved AS (
  UPDATE vouchers AS v
     SET last_sequence = w.last_after, sealed_sequence = w.sealed_after, sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])
         AS w (id, last_before, last_after, sealed_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'unchanged chain heads') FROM moved;

-- name: redeem_vouchers
-- Sets locked, Active vouchers to Redeemed and writes their chain heads. Raises VS001 when one is not Active or its chain has changed.
-- $1 voucher_id text[], $2 last_sequence int[] before, $3 last_sequence int[] after (all of it sealed), $4 sealed_hash text[], hex,
-- $5 redeemed_at timestamptz
WITH redeemed AS (
  UPDATE vouchers AS v
     SET status = 'Redeemed', pickable = false, redeemed_at = $5::timestamptz, last_sequence = w.last_after,
         sealed_sequence = w.last_after, sealed_hash = decode(w.hash_after, 'hex')
    FROM unnest($1::text[], $2::int[], $3::int[], $4::text[]) AS w (id, last_before, last_after, hash_after)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.status = 'Active' AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers with an unchanged chain') FROM redeemed;

-- name: void_vouchers
-- Sets locked, Active vouchers to Voided and writes their chain heads. Raises VS001 when one is not Active or its chain has changed.
-- $1 voucher_id text[], $2 last_sequence int[] before, $3 last_sequence int[] after, $4 sealed_sequence int[] after,
-- $5 sealed_hash text[] after, hex
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

-- name: select_vouchers_of_batch
-- The next vouchers of a batch in order of serials.
-- $1 batch_id text, $2 after serial int (exclusive), $3 limit int
SELECT v.id, v.code, v.serial, v.status FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.serial > $2::int ORDER BY v.serial LIMIT $3::int;

-- name: find_voucher_in_organization
-- A voucher's id by its code within one organization.
-- $1 organization_id text, $2 code_key text
SELECT v.id FROM vouchers AS v WHERE v.organization_id = $1::text AND v.code_key = $2::text;

-- name: find_vouchers
-- Finds vouchers for operators, in id order, by one of $2 to $6 or by $7 and $8; the others are null. A code, a reference and a redeem code
-- are unique only within an organization. Without an organization, each organization that has brands is searched, with one index scan per
-- organization. Additional indexes would make every issue and every redemption slower.
-- $1 organization_id text or null, $2 code_key text, $3 ticket text, $4 voucher_id text, $5 external_ref text, $6 redeem_code text,
-- $7 batch_id text, $8 serial int, $9 limit int
WITH searched AS (
  SELECT $1::text AS id WHERE $1::text IS NOT NULL
   UNION
  SELECT br.organization_id FROM brands AS br WHERE $1::text IS NULL
)
SELECT clock.now, v.id, v.code, v.serial, v.organization_id AS "organizationId", v.batch_id AS "batchId", v.status,
       v.redeemed_at AS "redeemedAt", b.valid_until AS "validUntil", p.name AS "productName", p.key AS "productKey", br.name AS brand,
       rd.external_ref AS "externalRef", rd.redeem_code AS "redeemCode", og.sandbox
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
 CROSS JOIN LATERAL (
       SELECT i.id FROM vouchers AS i WHERE i.id = $4::text
        UNION ALL
       SELECT s.id FROM vouchers AS s WHERE s.batch_id = $7::text AND s.serial = $8::int
        UNION ALL
       SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text
        UNION ALL
       SELECT c.id FROM searched AS o JOIN vouchers AS c ON c.organization_id = ANY (ARRAY[o.id]) AND c.code_key = $2::text
        WHERE $2::text IS NOT NULL
        UNION ALL
       SELECT d.voucher_id FROM searched AS o JOIN redemptions AS d ON d.organization_id = ANY (ARRAY[o.id]) AND d.external_ref = $5::text
        WHERE $5::text IS NOT NULL
        UNION ALL
       SELECT d.voucher_id FROM searched AS o
         JOIN redemptions AS d ON d.redeem_code || ' ' || d.organization_id = ANY (ARRAY[$6::text || ' ' || o.id])
        WHERE $6::text IS NOT NULL
       ) AS found
  JOIN vouchers AS v ON v.id = ANY (ARRAY[found.id]) AND v.organization_id IS NOT DISTINCT FROM coalesce($1::text, v.organization_id)
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS og ON og.id = ANY (ARRAY[v.organization_id])
  LEFT JOIN redemptions AS rd ON rd.voucher_id = ANY (ARRAY[v.id])
 ORDER BY found.id LIMIT $9::int;

-- name: find_range_end
-- The last of the next vouchers in id order; null when there is none.
-- $1 after voucher_id text (exclusive; '' for the first), $2 limit int
SELECT max(n.id) AS "lastId" FROM (SELECT v.id FROM vouchers AS v WHERE v.id > $1::text ORDER BY v.id LIMIT $2::int) AS n;

-- name: select_chain_heads_of_range
-- The chain heads of the vouchers in an id range, in id order.
-- $1 after voucher_id text (exclusive), $2 last voucher_id text
SELECT v.id AS "voucherId", v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence",
       encode(v.sealed_hash, 'hex') AS "sealedHash"
  FROM vouchers AS v WHERE v.id > $1::text AND v.id <= $2::text ORDER BY v.id;

-- name: read_chain_heads
-- The chain heads of vouchers.
-- $1 voucher_id text[]
SELECT v.id, v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence", encode(v.sealed_hash, 'hex') AS "sealedHash"
  FROM vouchers AS v WHERE v.id = ANY ($1::text[]);

-- name: lock_expired_batch
-- Of the batches with expiries to record, locks the one that expired first. Skips batches that another transaction has locked. Only sweepers
-- and advance_sandbox lock batches, always before vouchers, so no transaction waits for a batch while it has a voucher locked.
-- $1 batch_id text[] to leave out, $2 batch_id text[] to choose from or null for all
SELECT b.id AS "batchId", b.expiry_recorded_to AS "recordedTo", b.voucher_count AS "voucherCount" FROM batches AS b
 WHERE b.expiry_recorded_to < b.voucher_count AND b.valid_until <= (SELECT clock_timestamp()) AND b.id <> ALL ($1::text[])
   AND ($2::text[] IS NULL OR b.id IN (SELECT unnest($2::text[])))
 ORDER BY b.valid_until, b.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_unrecorded_expiries
-- Locks the Active vouchers of a serial range whose expiry is not recorded, in id order. Skips locked ones, and damaged ones, whose chains have
-- an event beyond the head and take no other. OFFSET 0 keeps a plan that was made while there were no expiries from reading all of them.
-- $1 batch_id text, $2 after serial int (exclusive), $3 last serial int
SELECT v.id FROM vouchers AS v
 WHERE v.id = ANY (ARRAY(SELECT r.id FROM vouchers AS r WHERE r.batch_id = $1::text AND r.serial > $2::int AND r.serial <= $3::int))
   AND v.status = 'Active'
   AND NOT EXISTS (SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
   AND NOT EXISTS (SELECT 1 FROM voucher_events AS d WHERE d.voucher_id = v.id AND d.sequence > v.last_sequence OFFSET 0)
 ORDER BY v.id FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: advance_expiry
-- Sets the serial up to which the expiries of a locked batch are recorded: the serial before the first Active voucher in a range whose expiry
-- is not recorded, or the end of the range if there is none. Damaged vouchers and OFFSET 0 as in lock_unrecorded_expiries.
-- $1 batch_id text, $2 after serial int (exclusive), $3 last serial int
UPDATE batches AS b
   SET expiry_recorded_to = coalesce((
         SELECT min(v.serial) - 1 FROM vouchers AS v
          WHERE v.batch_id = $1::text AND v.serial > $2::int AND v.serial <= $3::int AND v.status = 'Active'
            AND NOT EXISTS (
                  SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
            AND NOT EXISTS (SELECT 1 FROM voucher_events AS d WHERE d.voucher_id = v.id AND d.sequence > v.last_sequence OFFSET 0)
       ), $3::int)
 WHERE b.id = $1::text
RETURNING b.expiry_recorded_to AS "recordedTo";

-- name: estimate_voucher_count
-- An estimate of the number of vouchers, from the last ANALYZE; -1 before the first ANALYZE.
SELECT c.reltuples AS estimate FROM pg_class AS c WHERE c.oid = 'vouchers'::regclass;
