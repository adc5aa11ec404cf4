-- name: insert_contract(id, brand_id, user_id, ends_at?)
INSERT INTO referrer_contracts (id, brand_id, user_id, ends_at) VALUES ($1::text, $2::text, $3::text, $4::timestamptz);

-- name: move_contract(id, status, allowed)
-- Changes a contract's status if its current status is allowed.
UPDATE referrer_contracts AS c SET status = $2::text, changed_at = statement_timestamp()
 WHERE c.id = $1::text AND c.status = ANY ($3::text[]);

-- name: find_contract_status(id)
SELECT c.status FROM referrer_contracts AS c WHERE c.id = $1::text;

-- name: end_overdue_contracts(limit, latest?)
-- Sets Active contracts to Ended if their ends_at has passed. Skips locked contracts.
UPDATE referrer_contracts AS c SET status = 'Ended', changed_at = least(statement_timestamp(), $2::timestamptz)
 WHERE c.id = ANY (ARRAY(
         SELECT d.id FROM referrer_contracts AS d WHERE d.status = 'Active' AND d.ends_at <= least(statement_timestamp(), $2::timestamptz)
          ORDER BY d.ends_at LIMIT $1::int FOR UPDATE SKIP LOCKED));

-- name: insert_link(code, contract_id, product_id)
-- Inserts a referral link. Inserts no row if the contract or the product does not exist, or if they have different
-- brands.
INSERT INTO referral_links (code, contract_id, product_id, brand_id)
SELECT $1::text, c.id, p.id, p.brand_id
  FROM referrer_contracts AS c JOIN products AS p ON p.brand_id = c.brand_id
 WHERE c.id = $2::text AND p.id = $3::text;

-- name: find_linked_product(code)
-- The product of a referral link, with the status and end of the link's contract.
SELECT c.status, c.ends_at AS "endsAt", p.id AS "productId", p.name AS "productName",
       p.key AS "productKey", br.name AS brand, br.colour, lo.name AS logo, p.retail_price_usd AS "retailPriceUsd", p.price_usd AS "priceUsd", p.benefit_months AS "benefitMonths",
       o.time_zone AS "timeZone"
  FROM referral_links AS l
  JOIN referrer_contracts AS c ON c.id = ANY (ARRAY[l.contract_id])
  JOIN products AS p ON p.id = ANY (ARRAY[l.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS o ON o.id = ANY (ARRAY[br.organization_id])
  LEFT JOIN brand_logos AS lo ON lo.brand_id = ANY (ARRAY[br.id])
 WHERE l.code = $1::text;

-- name: list_contracts(org?, brand?, user?, status?, after, limit)
-- Referrer contracts in id order. An Active contract past its end is shown as Ended, even before its row is updated.
SELECT c.id, c.brand_id AS "brandId", b.name AS brand, c.user_id AS "userId", s.status, c.ends_at AS "endsAt", c.offered_at AS "offeredAt"
  FROM (SELECT clock_timestamp() AS now) AS clock
  JOIN referrer_contracts AS c ON c.id > $5::text AND ($2::text IS NULL OR c.brand_id = $2::text) AND ($3::text IS NULL OR c.user_id = $3::text)
  JOIN brands AS b ON b.id = c.brand_id AND ($1::text IS NULL OR b.organization_id = $1::text)
 CROSS JOIN LATERAL (SELECT CASE WHEN c.status = 'Active' AND c.ends_at <= clock.now THEN 'Ended' ELSE c.status END AS status) AS s
 WHERE $4::text IS NULL OR s.status = $4::text
 ORDER BY c.id LIMIT $6::int;

-- name: list_links(org?, contract?, product?, user?, after, limit)
-- Referral links in the order of their codes.
SELECT l.code, l.contract_id AS "contractId", l.product_id AS "productId", p.name AS "productName", c.user_id AS "userId",
       l.created_at AS "createdAt"
  FROM referral_links AS l JOIN referrer_contracts AS c ON c.id = l.contract_id JOIN products AS p ON p.id = l.product_id
  JOIN brands AS br ON br.id = p.brand_id
 WHERE l.code > $5::text AND ($1::text IS NULL OR br.organization_id = $1::text) AND ($2::text IS NULL OR l.contract_id = $2::text)
   AND ($3::text IS NULL OR l.product_id = $3::text) AND ($4::text IS NULL OR c.user_id = $4::text)
 ORDER BY l.code LIMIT $6::int;
