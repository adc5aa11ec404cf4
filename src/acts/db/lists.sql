-- name: list_organizations(name?, after, limit)
-- Organizations in id order, which is the order of their creation.
SELECT o.id, o.name, o.sandbox, o.created_at AS "createdAt" FROM organizations AS o
 WHERE o.id > $2::text AND ($1::text IS NULL OR strpos(lower(o.name), lower($1::text)) > 0)
 ORDER BY o.id LIMIT $3::int;

-- name: list_brands(org?, name?, after, limit)
SELECT b.id, b.organization_id AS "organizationId", b.name, b.colour, l.name AS logo, b.created_at AS "createdAt"
  FROM brands AS b LEFT JOIN brand_logos AS l ON l.brand_id = b.id
 WHERE b.id > $3::text AND ($1::text IS NULL OR b.organization_id = $1::text)
   AND ($2::text IS NULL OR strpos(lower(b.name), lower($2::text)) > 0)
 ORDER BY b.id LIMIT $4::int;

-- name: list_products(org?, brand?, name?, after, limit)
SELECT p.id, p.brand_id AS "brandId", p.key, p.name, p.type, p.retail_price_usd AS "retailPriceUsd", p.price_usd AS "priceUsd",
       p.benefit_months AS "benefitMonths", p.usage_unit_label AS "usageUnitLabel", p.created_at AS "createdAt"
  FROM products AS p JOIN brands AS b ON b.id = p.brand_id
 WHERE p.id > $4::text AND ($1::text IS NULL OR b.organization_id = $1::text) AND ($2::text IS NULL OR p.brand_id = $2::text)
   AND ($3::text IS NULL OR strpos(lower(p.name), lower($3::text)) > 0)
 ORDER BY p.id LIMIT $5::int;

-- name: list_batches(org?, brand?, product?, id?, after, limit)
-- Batches in id order, with the kinds of their windows. Vouchers are not counted.
SELECT b.id, b.product_id AS "productId", p.name AS "productName", b.audience, b.voucher_count AS count, b.valid_until AS "validUntil",
       b.price_usd AS "priceUsd", ARRAY(SELECT w.kind FROM batch_windows AS w WHERE w.batch_id = b.id ORDER BY w.kind DESC) AS windows,
       b.created_at AS "createdAt"
  FROM batches AS b JOIN products AS p ON p.id = b.product_id JOIN brands AS br ON br.id = p.brand_id
 WHERE b.id > $5::text AND ($1::text IS NULL OR br.organization_id = $1::text) AND ($2::text IS NULL OR p.brand_id = $2::text)
   AND ($3::text IS NULL OR b.product_id = $3::text)
   AND ($4::text IS NULL OR b.id = $4::text)
 ORDER BY b.id LIMIT $6::int;

-- name: list_operators(after, limit)
-- Operators in id order, without tokens. oldTokensUntil: when the last replaced token expires. Null if none is left.
SELECT o.id, o.name, o.role, o.expires_at AS "expiresAt", o.revoked_at AS "revokedAt",
       CASE WHEN o.revoked_at IS NOT NULL THEN 'Revoked' WHEN o.expires_at <= clock_timestamp() THEN 'Expired' ELSE 'Active' END AS state,
       (SELECT max(t.expires_at) FROM operator_tokens AS t WHERE t.operator_id = o.id AND t.expires_at > clock_timestamp()) AS "oldTokensUntil"
  FROM operators AS o WHERE o.id > $1::text ORDER BY o.id LIMIT $2::int;

-- name: find_by_name(kind, name)
-- The ids of organizations, brands or products with a name, ignoring case. At most ten.
SELECT id FROM (SELECT 'org' AS kind, o.id, o.name FROM organizations AS o
                 UNION ALL SELECT 'brand', b.id, b.name FROM brands AS b
                 UNION ALL SELECT 'product', p.id, p.name FROM products AS p) AS named
 WHERE kind = $1::text AND lower(name) = lower($2::text)
 ORDER BY id LIMIT 10;
