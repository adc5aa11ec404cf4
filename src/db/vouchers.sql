-- name: resolve_vouchers
-- Reads vouchers as partners name them, many at a time: each by code or by ticket, always within one organization, so
-- that a foreign voucher and an unknown one leave this statement alike. One row per wanted entry, in no order; `voucher_id`
-- is null where nothing matches. Also tells, from the same snapshot, the database's time, the hold that is live at that time,
-- and whether an external reference of the organization is confirmed already.
-- $1 organization_id text[], $2 code_key text[], $3 ticket text[], $4 external_ref text[]: equally long; null where unused
SELECT (w.n - 1)::int AS n, clock.now, v.id AS voucher_id, v.code, v.serial, v.status, v.redeemed_at, b.valid_until, b.retail_price_usd,
       b.price_usd, b.benefit_months, b.usage_unit_label, p.name AS product_name, p.key AS product_key, p.type, br.name AS brand,
       h.ticket AS hold_ticket, h.key_id AS hold_key_id, h.started_at AS hold_started_at, h.expires_at AS hold_expires_at,
       h.token_secret_id AS hold_token_secret_id, rd.voucher_id IS NOT NULL AS confirmed
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
       WITH ORDINALITY AS w (organization_id, code_key, ticket, external_ref, n)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now OFFSET 0) AS clock
  LEFT JOIN LATERAL (
       SELECT c.* FROM vouchers AS c WHERE c.organization_id = w.organization_id AND c.code_key = w.code_key
        UNION ALL
       SELECT t.* FROM reservations AS r JOIN vouchers AS t ON t.id = ANY (ARRAY[r.voucher_id])
        WHERE r.ticket = w.ticket AND r.organization_id = w.organization_id
       ) AS v ON true
  LEFT JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  LEFT JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h
    ON h.expires_at > clock.now
  LEFT JOIN redemptions AS rd ON rd.organization_id = ANY (ARRAY[w.organization_id]) AND rd.external_ref = w.external_ref;

-- name: lock_free_vouchers
-- Locks those of the wanted vouchers that nobody else has locked, in id order, and tells which. Nothing is decided here: a
-- joined row would show the state from before a lock wait.
-- $1 voucher_id text[]
SELECT v.id FROM vouchers AS v WHERE v.id = ANY ($1::text[]) ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_voucher
-- Locks one voucher, waiting for it up to the transaction's lock_timeout.
-- $1 voucher_id text
SELECT v.id FROM vouchers AS v WHERE v.id = $1::text FOR NO KEY UPDATE;

-- name: read_locked_vouchers
-- The state that decides a move, read after the locks, with the one time that the whole transaction uses and the hold row that
-- is Live, past its time or not. One row per voucher.
-- $1 voucher_id text[]
SELECT clock.now, v.id AS voucher_id, v.organization_id, v.code, v.serial, v.status, v.last_sequence, v.sealed_sequence,
       encode(v.sealed_hash, 'hex') AS sealed_hash, b.valid_until, b.retail_price_usd, b.price_usd,
       h.ticket AS hold_ticket, h.key_id AS hold_key_id, h.started_at AS hold_started_at, h.expires_at AS hold_expires_at,
       h.token_secret_id AS hold_token_secret_id
  FROM unnest($1::text[]) AS w (id)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now OFFSET 0) AS clock
  JOIN vouchers AS v ON v.id = ANY (ARRAY[w.id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  LEFT JOIN LATERAL (SELECT r.* FROM reservations AS r WHERE r.voucher_id = v.id AND r.state = 'Live' OFFSET 0) AS h ON true;

-- name: advance_chains
-- Moves the chain heads of locked vouchers. Raises VS001 when a head is not where its writer read it.
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
SELECT demand_rows(count(*), cardinality($1::text[]), 'chain heads were where they were read') FROM moved;

-- name: redeem_vouchers
-- Sets locked, Active vouchers to Redeemed and moves their chain heads. Raises VS001 when one is not Active or not where it was read.
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
SELECT demand_rows(count(*), cardinality($1::text[]), 'vouchers to redeem were Active and where they were read') FROM redeemed;

-- name: void_voucher
-- Sets a locked, Active voucher to Voided and counts the event that says so, which is Pending. Raises VS001 when it is not Active or not
-- where it was read.
-- $1 voucher_id text, $2 last_sequence int before
WITH voided AS (
  UPDATE vouchers AS v SET status = 'Voided', pickable = false, last_sequence = $2::int + 1
   WHERE v.id = $1::text AND v.status = 'Active' AND v.last_sequence = $2::int
  RETURNING 1
)
SELECT demand_rows(count(*), 1, 'vouchers to void were Active and where they were read') FROM voided;

-- name: find_voucher_in_organization
-- A voucher's id by its code within one organization.
-- $1 organization_id text, $2 code_key text
SELECT v.id FROM vouchers AS v WHERE v.organization_id = $1::text AND v.code_key = $2::text;

-- name: find_last_of_next
-- The last of the next vouchers in id order; null when there is none.
-- $1 voucher_id text to continue behind ('' for the first), $2 limit int
SELECT max(n.id) AS last_id FROM (SELECT v.id FROM vouchers AS v WHERE v.id > $1::text ORDER BY v.id LIMIT $2::int) AS n;

-- name: select_chain_heads_of_range
-- The chain heads of the vouchers in an id range, in id order.
-- $1 voucher_id text behind which the range begins, $2 last voucher_id text
SELECT v.id AS voucher_id, v.last_sequence, v.sealed_sequence, encode(v.sealed_hash, 'hex') AS sealed_hash
  FROM vouchers AS v WHERE v.id > $1::text AND v.id <= $2::text ORDER BY v.id;

-- name: find_chain_head
-- One voucher's chain head.
-- $1 voucher_id text
SELECT v.id AS voucher_id, v.last_sequence, v.sealed_sequence, encode(v.sealed_hash, 'hex') AS sealed_hash
  FROM vouchers AS v WHERE v.id = $1::text;

-- name: lock_expired_batch
-- Locks the batch whose vouchers expired first and are not all recorded, leaving out those in $1 and those that another sweeper has
-- locked. Only sweepers lock batches, and they do so before vouchers; nobody who has a voucher's lock waits for a batch.
-- $1 batch_id text[]
SELECT b.id AS batch_id, b.expiry_recorded_to, b.voucher_count FROM batches AS b
 WHERE b.expiry_recorded_to < b.voucher_count AND b.valid_until <= (SELECT clock_timestamp()) AND b.id <> ALL ($1::text[])
 ORDER BY b.valid_until, b.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_unrecorded_expiries
-- Locks the free ones among the Active vouchers of a serial range whose expiry is not recorded, in id order.
-- $1 batch_id text, $2 serial int behind which the range begins, $3 last serial int
SELECT v.id FROM vouchers AS v
 WHERE v.id = ANY (ARRAY(SELECT r.id FROM vouchers AS r WHERE r.batch_id = $1::text AND r.serial > $2::int AND r.serial <= $3::int))
   AND v.status = 'Active'
   AND NOT EXISTS (SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
 ORDER BY v.id FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: advance_expiry
-- Moves a locked batch's mark to the end of a serial range, or to just before the first voucher in it that was passed over.
-- $1 batch_id text, $2 serial int behind which the range begins, $3 last serial int
UPDATE batches AS b
   SET expiry_recorded_to = coalesce((
         SELECT min(v.serial) - 1 FROM vouchers AS v
          WHERE v.batch_id = $1::text AND v.serial > $2::int AND v.serial <= $3::int AND v.status = 'Active'
            AND NOT EXISTS (
                  SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
       ), $3::int)
 WHERE b.id = $1::text
RETURNING b.expiry_recorded_to;

-- name: estimate_voucher_count
-- About how many vouchers there are, as the last ANALYZE saw it; -1 before the first.
SELECT c.reltuples AS estimate FROM pg_class AS c WHERE c.oid = 'vouchers'::regclass;
