-- name: insert_claim
-- Inserts a user's one claim of a product, or nothing when it exists. Waits for a transaction that is inserting the same claim.
-- $1 user_id text, $2 product_id text
INSERT INTO claims (user_id, product_id) VALUES ($1::text, $2::text) ON CONFLICT (user_id, product_id) DO NOTHING;

-- name: fill_claim
-- $1 user_id text, $2 product_id text, $3 voucher_id text
UPDATE claims AS c SET voucher_id = $3::text WHERE c.user_id = $1::text AND c.product_id = $2::text;

-- name: find_claim
-- The voucher of a claim, with the organization and code that resolve it.
-- $1 user_id text, $2 product_id text
SELECT v.id, v.organization_id AS "organizationId", v.code_key AS "codeKey", o.sandbox
  FROM claims AS c JOIN vouchers AS v ON v.id = ANY (ARRAY[c.voucher_id])
  JOIN organizations AS o ON o.id = ANY (ARRAY[v.organization_id])
 WHERE c.user_id = $1::text AND c.product_id = $2::text;

-- name: insert_purchase
-- Inserts the one purchase of a user's payment, or nothing when it exists. Waits for a transaction that is inserting the same purchase.
-- $1 user_id text, $2 payment_ref text
INSERT INTO purchases (user_id, payment_ref) VALUES ($1::text, $2::text) ON CONFLICT (user_id, payment_ref) DO NOTHING;

-- name: fill_purchase
-- $1 user_id text, $2 payment_ref text, $3 voucher_id text
UPDATE purchases AS s SET voucher_id = $3::text WHERE s.user_id = $1::text AND s.payment_ref = $2::text;

-- name: find_purchase
-- The voucher of a purchase, with the organization and code that resolve it.
-- $1 user_id text, $2 payment_ref text
SELECT v.id, v.organization_id AS "organizationId", v.code_key AS "codeKey", o.sandbox
  FROM purchases AS s JOIN vouchers AS v ON v.id = ANY (ARRAY[s.voucher_id])
  JOIN organizations AS o ON o.id = ANY (ARRAY[v.organization_id])
 WHERE s.user_id = $1::text AND s.payment_ref = $2::text;

-- name: select_offers
-- The valid batches of a product that have one kind of window, with a user's role and contract, at one moment. One row per batch, or one
-- row without a batch when there is none; no row when there is no such product, or when it is of a sandbox that the user may not see.
-- $1 user_id text or null, $2 product_id text, $3 kind text, $4 batch_id text or null: this batch only, $5 by a referrer's link boolean: the
-- user may see the product
SELECT clock.now, m.role, g.sandbox, c.id AS "contract.id", c.status AS "contract.status", c.ends_at AS "contract.endsAt",
       b.id AS "offer.batchId", b.audience AS "offer.audience", b.valid_until AS "offer.validUntil", w.opens_at AS "offer.opensAt",
       w.closes_at AS "offer.closesAt"
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
  JOIN products AS p ON p.id = $2::text
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS g ON g.id = ANY (ARRAY[br.organization_id])
   AND (NOT g.sandbox OR $5::boolean OR may_see_sandbox(g.id, br.id, $1::text))
  LEFT JOIN members AS m ON m.organization_id = br.organization_id AND m.user_id = $1::text
  LEFT JOIN referrer_contracts AS c ON c.user_id = $1::text AND c.brand_id = ANY (ARRAY[br.id]) AND c.status = 'Active'
  LEFT JOIN (batches AS b JOIN batch_windows AS w ON w.batch_id = ANY (ARRAY[b.id]) AND w.kind = $3::text)
    ON b.product_id = p.id AND b.id = coalesce($4::text, b.id) AND b.valid_until > clock.now;

-- name: pick_free_voucher
-- Locks the next unlocked voucher of a batch's windows that had no live reservation when this statement started. Decides nothing: a later
-- statement reads the state under the lock.
-- $1 batch_id text, $2 voucher_id text[] not to pick
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND v.id <> ALL ($2::text[])
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()))
 ORDER BY v.serial LIMIT 1 FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: pick_voucher
-- The same, but waits for locked vouchers, because the transactions that hold the locks may roll back.
-- $1 batch_id text, $2 voucher_id text[] not to pick
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND v.id <> ALL ($2::text[])
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()))
 ORDER BY v.serial LIMIT 1 FOR NO KEY UPDATE OF v;

-- name: is_any_pickable
-- Whether these batches have a voucher left without a live reservation. Reads committed state, so a locked voucher counts.
-- $1 batch_id text[]
SELECT EXISTS (
  SELECT 1 FROM vouchers AS v
   WHERE v.batch_id = ANY ($1::text[]) AND v.pickable
     AND NOT EXISTS (SELECT 1 FROM reservations AS h
                      WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT clock_timestamp()))
) AS any;

-- name: acquire_voucher
-- Removes a locked, Active voucher from its windows and counts its Pending event. Raises VS001 when it has left already or its chain has
-- changed. IS NOT FALSE keeps the search by id out of the index vouchers_pickable.
-- $1 voucher_id text, $2 last_sequence int before the update
WITH acquired AS (
  UPDATE vouchers AS v SET pickable = false, last_sequence = $2::int + 1
   WHERE v.id = $1::text AND v.pickable IS NOT FALSE AND v.status = 'Active' AND v.last_sequence = $2::int
  RETURNING 1
)
SELECT assert_row_count(count(*), 1, 'Active vouchers in a window with an unchanged chain') FROM acquired;
