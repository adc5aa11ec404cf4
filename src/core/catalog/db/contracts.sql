-- name: insert_member(organization_id, user_id, role)
-- Makes a user a member of an organization, or changes their role.
INSERT INTO members (organization_id, user_id, role) VALUES ($1::text, $2::text, $3::text)
    ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role;

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
