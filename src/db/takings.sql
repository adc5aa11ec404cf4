-- name: insert_claim
-- Begins a user's one claim of a product, or returns no row when there is one, after waiting for one that is being made.
-- $1 user_id text, $2 product_id text
INSERT INTO claims (user_id, product_id) VALUES ($1::text, $2::text) ON CONFLICT (user_id, product_id) DO NOTHING RETURNING user_id;

-- name: fill_claim
-- $1 user_id text, $2 product_id text, $3 voucher_id text
UPDATE claims AS c SET voucher_id = $3::text WHERE c.user_id = $1::text AND c.product_id = $2::text;

-- name: find_claim
-- The voucher that was taken, with what it is resolved by.
-- $1 user_id text, $2 product_id text
SELECT v.id, v.organization_id, v.code_key
  FROM claims AS c JOIN vouchers AS v ON v.id = ANY (ARRAY[c.voucher_id])
 WHERE c.user_id = $1::text AND c.product_id = $2::text;

-- name: insert_purchase
-- Begins the one purchase of a user's payment, or returns no row when there is one, after waiting for one that is being made.
-- $1 user_id text, $2 payment_ref text
INSERT INTO purchases (user_id, payment_ref) VALUES ($1::text, $2::text) ON CONFLICT (user_id, payment_ref) DO NOTHING RETURNING user_id;

-- name: fill_purchase
-- $1 user_id text, $2 payment_ref text, $3 voucher_id text
UPDATE purchases AS s SET voucher_id = $3::text WHERE s.user_id = $1::text AND s.payment_ref = $2::text;

-- name: find_purchase
-- The voucher that was taken, with what it is resolved by.
-- $1 user_id text, $2 payment_ref text
SELECT v.id, v.organization_id, v.code_key
  FROM purchases AS s JOIN vouchers AS v ON v.id = ANY (ARRAY[s.voucher_id])
 WHERE s.user_id = $1::text AND s.payment_ref = $2::text;

-- name: select_offers
-- What decides who may take from a product's batches through one kind of window, and what a user is to its brand, at one moment. One
-- row per batch that has such a window, and one without a batch when there is none; no row when there is no such product.
-- $1 user_id text, $2 product_id text, $3 kind text, $4 batch_id text or null: this batch only
SELECT clock.now, m.role, c.id AS contract_id, c.ends_at, b.id AS batch_id, b.audience, b.valid_until, w.opens_at, w.closes_at
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now OFFSET 0) AS clock
  JOIN products AS p ON p.id = $2::text
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN members AS m ON m.organization_id = ANY (ARRAY[br.organization_id]) AND m.user_id = $1::text
  LEFT JOIN referrer_contracts AS c ON c.user_id = $1::text AND c.brand_id = ANY (ARRAY[br.id]) AND c.status = 'Active'
  LEFT JOIN (batches AS b JOIN batch_windows AS w ON w.batch_id = ANY (ARRAY[b.id]) AND w.kind = $3::text)
    ON b.product_id = ANY (ARRAY[p.id]) AND b.id = coalesce($4::text, b.id) AND b.valid_until > clock.now;

-- name: pick_free_voucher
-- Locks the next voucher of a batch's windows that nobody has locked and that had no live hold when this statement began. Nothing is
-- decided here: the state is read under the lock, by a later statement.
-- $1 batch_id text, $2 voucher_id text[] not to pick
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND v.id <> ALL ($2::text[])
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()) OFFSET 0)
 ORDER BY v.serial LIMIT 1 FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: pick_voucher
-- The same, waiting for locks: what others were about to take may be left after all.
-- $1 batch_id text, $2 voucher_id text[] not to pick
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND v.id <> ALL ($2::text[])
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()) OFFSET 0)
 ORDER BY v.serial LIMIT 1 FOR NO KEY UPDATE OF v;

-- name: is_any_pickable
-- Whether a voucher of these batches is left that has no live hold, as it is committed: one that somebody is about to take counts.
-- $1 batch_id text[]
SELECT EXISTS (
  SELECT 1 FROM vouchers AS v
   WHERE v.batch_id = ANY ($1::text[]) AND v.pickable
     AND NOT EXISTS (SELECT 1 FROM reservations AS h
                      WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()) OFFSET 0)
) AS any;

-- name: take_voucher
-- Takes a locked, Active voucher out of its windows and counts the event that says so, which is Pending. Raises VS001 when it has left
-- already or is not where it was read.
-- $1 voucher_id text, $2 last_sequence int before
WITH taken AS (
  UPDATE vouchers AS v SET pickable = false, last_sequence = $2::int + 1
   WHERE v.id = $1::text AND v.pickable IS NOT FALSE AND v.status = 'Active' AND v.last_sequence = $2::int
  RETURNING 1
)
SELECT demand_rows(count(*), 1, 'vouchers to take were in a window and where they were read') FROM taken;
