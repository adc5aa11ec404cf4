-- name: select_listings(user_id?, listing_id?, after, limit)
-- Listings as one caller may see them: the listing with an id, or the next listings after a cursor whose vouchers are
-- still valid. Only users who may see a sandbox see its listings. `isLeft`: whether any voucher can be bought. Such a
-- voucher is valid, Active, not acquired by a user, not suspended and not reserved. OFFSET 0 prevents a plan that reads
-- all reservations for each listing, or that starts with the products.
SELECT clock.now, l.id, b.id AS "batchId", b.audience, b.valid_until AS "validUntil", b.suspended_at IS NOT NULL AS suspended, b.retail_price_usd AS "retailPriceUsd",
       b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths", b.usage_unit_label AS "usageUnitLabel", p.id AS "productId",
       p.name AS "productName", p.key AS "productKey", p.type, br.name AS brand, g.time_zone AS "timeZone", w.kind AS "window.kind", w.opens_at AS "window.opensAt",
       w.closes_at AS "window.closesAt", g.sandbox, m.role, c.id AS "contract.id", c.status AS "contract.status", c.ends_at AS "contract.endsAt",
       supply."isLeft"
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
  JOIN LATERAL (
       SELECT o.* FROM listings AS o WHERE $2::text IS NOT NULL AND o.id = $2::text
        UNION ALL
       (SELECT o.*
          FROM listings AS o
          JOIN batches AS d ON d.id = ANY (ARRAY[o.batch_id])
          JOIN LATERAL (
               SELECT og.id, og.sandbox, ob.id AS brand_id
                 FROM products AS op
                 JOIN brands AS ob ON ob.id = ANY (ARRAY[op.brand_id])
                 JOIN organizations AS og ON og.id = ANY (ARRAY[ob.organization_id])
                WHERE op.id = ANY (ARRAY[d.product_id]) OFFSET 0
               ) AS s ON NOT s.sandbox OR may_see_sandbox(s.id, s.brand_id, $1::text)
         WHERE $2::text IS NULL AND o.id > $3::text AND d.valid_until > clock.now
         ORDER BY o.id LIMIT $4::int)
       ) AS l ON true
  JOIN batches AS b ON b.id = ANY (ARRAY[l.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS g ON g.id = ANY (ARRAY[br.organization_id])
   AND (NOT g.sandbox OR may_see_sandbox(g.id, br.id, $1::text))
  LEFT JOIN batch_windows AS w ON w.batch_id = ANY (ARRAY[b.id]) AND w.kind = 'buy'
  LEFT JOIN members AS m ON m.organization_id = br.organization_id AND m.user_id = $1::text
  LEFT JOIN referrer_contracts AS c ON c.user_id = $1::text AND c.brand_id = ANY (ARRAY[br.id]) AND c.status = 'Active'
 CROSS JOIN LATERAL (
       SELECT EXISTS (SELECT 1 FROM vouchers AS v
                       WHERE v.batch_id = b.id AND v.pickable AND b.valid_until > clock.now AND NOT voucher_suspended(v.suspension, b.suspended_at)
                         AND NOT EXISTS (SELECT 1 FROM reservations AS h
                                          WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > clock.now OFFSET 0)) AS "isLeft"
       ) AS supply
 ORDER BY l.id;

-- name: count_available(batch_ids, counted_max)
-- Counts the vouchers of each batch that can be bought, up to a limit, under the conditions of select_listings. Each
-- counted voucher costs two index reads, so a batch with a limit of a thousand takes milliseconds.
SELECT b.id AS "batchId", supply.available
  FROM (SELECT clock_timestamp() AS now) AS clock
 CROSS JOIN unnest($1::text[]) AS w (batch_id)
  JOIN batches AS b ON b.id = ANY (ARRAY[w.batch_id])
 CROSS JOIN LATERAL (
       SELECT count(*)::int AS available
         FROM (SELECT 1 FROM vouchers AS v
                WHERE v.batch_id = b.id AND v.pickable AND b.valid_until > clock.now AND NOT voucher_suspended(v.suspension, b.suspended_at)
                  AND NOT EXISTS (SELECT 1 FROM reservations AS h
                                   WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > clock.now OFFSET 0)
                LIMIT $2::int) AS up_to_limit
       ) AS supply;

-- name: count_stock(listings_max, left_max)
-- For each of the newest listings of valid vouchers: how many vouchers users can still acquire, counted up to a limit.
-- Includes reserved vouchers and vouchers that were suspended individually. The count of a suspended batch is 0. Leaves
-- out sandboxes. Reads vouchers only from the index vouchers_pickable. OFFSET 0 prevents a plan that starts with all
-- products.
SELECT named.brand, supply.available AS "left"
  FROM (SELECT d.id, d.product_id, d.suspended_at FROM listings AS o JOIN batches AS d ON d.id = ANY (ARRAY[o.batch_id])
         WHERE o.id > '' AND d.valid_until > (SELECT clock_timestamp()) ORDER BY o.id DESC LIMIT $1::int) AS b
 CROSS JOIN LATERAL (
       SELECT br.name AS brand FROM products AS p JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
         JOIN organizations AS og ON og.id = ANY (ARRAY[br.organization_id])
        WHERE p.id = b.product_id AND NOT og.sandbox OFFSET 0
       ) AS named
 CROSS JOIN LATERAL (
       SELECT count(*)::int AS available
         FROM (SELECT 1 FROM vouchers AS v WHERE v.batch_id = b.id AND v.pickable AND b.suspended_at IS NULL ORDER BY v.serial LIMIT $2::int) AS up_to_limit
       ) AS supply;

-- name: insert_listing(id, batch_id)
INSERT INTO listings (id, batch_id) VALUES ($1::text, $2::text);

-- name: list_listings(org?, product?, batch?, after, limit)
-- Listings in id order.
SELECT l.id, l.batch_id AS "batchId", b.product_id AS "productId", p.name AS "productName", b.audience, b.valid_until AS "validUntil",
       l.created_at AS "createdAt"
  FROM listings AS l JOIN batches AS b ON b.id = l.batch_id JOIN products AS p ON p.id = b.product_id
  JOIN brands AS br ON br.id = p.brand_id
 WHERE l.id > $4::text AND ($1::text IS NULL OR br.organization_id = $1::text) AND ($2::text IS NULL OR b.product_id = $2::text)
   AND ($3::text IS NULL OR l.batch_id = $3::text)
 ORDER BY l.id LIMIT $5::int;
