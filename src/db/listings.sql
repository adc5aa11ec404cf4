-- name: insert_listing
-- $1 id text, $2 batch_id text
INSERT INTO listings (id, batch_id) VALUES ($1::text, $2::text);

-- name: insert_window
-- $1 batch_id text, $2 kind text, $3 opens_at timestamptz or null, $4 closes_at timestamptz or null
INSERT INTO batch_windows (batch_id, kind, opens_at, closes_at) VALUES ($1::text, $2::text, $3::timestamptz, $4::timestamptz);

-- name: find_listing_batch
-- The batch and the product of a listing.
-- $1 listing_id text
SELECT l.batch_id, b.product_id FROM listings AS l JOIN batches AS b ON b.id = ANY (ARRAY[l.batch_id]) WHERE l.id = $1::text;

-- name: select_listings
-- Listings as one caller sees them: the one of an id, or the next ones behind a cursor whose vouchers are still valid. Counts up to
-- 1 001 vouchers that could be bought: in the window, Active, without a live hold.
-- $1 user_id text or null, $2 listing_id text or null, $3 listing_id text to continue behind, $4 limit int
SELECT clock.now, l.id, b.id AS batch_id, b.audience, b.valid_until, b.retail_price_usd, b.price_usd, b.benefit_months,
       b.usage_unit_label, p.id AS product_id, p.name AS product_name, p.key AS product_key, p.type, br.name AS brand,
       w.batch_id IS NOT NULL AS has_window, w.opens_at, w.closes_at, m.role = 'owner' AS is_owner, c.id AS contract_id, c.ends_at,
       supply.available
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now OFFSET 0) AS clock
  JOIN LATERAL (
       SELECT o.* FROM listings AS o WHERE $2::text IS NOT NULL AND o.id = $2::text
        UNION ALL
       (SELECT o.* FROM listings AS o JOIN batches AS d ON d.id = ANY (ARRAY[o.batch_id])
         WHERE $2::text IS NULL AND o.id > $3::text AND d.valid_until > clock.now ORDER BY o.id LIMIT $4::int)
       ) AS l ON true
  JOIN batches AS b ON b.id = ANY (ARRAY[l.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN batch_windows AS w ON w.batch_id = ANY (ARRAY[b.id]) AND w.kind = 'buy'
  LEFT JOIN members AS m ON m.organization_id = ANY (ARRAY[br.organization_id]) AND m.user_id = $1::text
  LEFT JOIN referrer_contracts AS c ON c.user_id = $1::text AND c.brand_id = ANY (ARRAY[br.id]) AND c.status = 'Active'
 CROSS JOIN LATERAL (
       SELECT count(*)::int AS available
         FROM (SELECT 1 FROM vouchers AS v
                WHERE v.batch_id = ANY (ARRAY[b.id]) AND v.pickable AND b.valid_until > clock.now
                  AND NOT EXISTS (SELECT 1 FROM reservations AS h
                                   WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > clock.now OFFSET 0)
                LIMIT 1001) AS up_to_1001
       ) AS supply
 ORDER BY l.id;
