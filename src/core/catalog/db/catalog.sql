-- name: insert_organization(id, name, sandbox)
INSERT INTO organizations (id, name, sandbox) VALUES ($1::text, $2::text, $3::boolean);

-- name: find_organization(id)
-- An organization's name, whether it is a sandbox, and the time zone of its pages.
SELECT o.name, o.sandbox, o.time_zone AS "timeZone" FROM organizations AS o WHERE o.id = $1::text;

-- name: update_time_zone(id, time_zone)
UPDATE organizations SET time_zone = $2::text WHERE id = $1::text;

-- name: find_namesake(parent_id?, name)
-- The oldest entity with a name, ignoring case: an organization, or a brand or product of the given parent.
SELECT o.id FROM organizations AS o WHERE $1::text IS NULL AND lower(o.name) = lower($2::text)
 UNION ALL
SELECT b.id FROM brands AS b WHERE b.organization_id = $1::text AND lower(b.name) = lower($2::text)
 UNION ALL
SELECT p.id FROM products AS p WHERE p.brand_id = $1::text AND lower(p.name) = lower($2::text)
 ORDER BY id LIMIT 1;

-- name: insert_brand(id, organization_id, name)
INSERT INTO brands (id, organization_id, name) VALUES ($1::text, $2::text, $3::text);

-- name: update_brand_name(id, name)
UPDATE brands SET name = $2::text WHERE id = $1::text;

-- name: insert_product(id, brand_id, key, name, type, retail_price_usd, price_usd, benefit_months, usage_unit_label?)
INSERT INTO products (id, brand_id, key, name, type, retail_price_usd, price_usd, benefit_months, usage_unit_label)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::text, $6::numeric, $7::numeric, $8::int, $9::text);

-- name: insert_batch(id, product_id, audience, voucher_count, valid_until)
-- Inserts a batch with the current prices and benefit of its product. Returns no row when there is no such product.
WITH product AS (
  SELECT p.*, br.organization_id, o.sandbox
    FROM products AS p JOIN brands AS br ON br.id = p.brand_id JOIN organizations AS o ON o.id = br.organization_id
   WHERE p.id = $2::text
), inserted AS (
  INSERT INTO batches (id, product_id, audience, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months,
                       usage_unit_label)
  SELECT $1::text, p.id, $3::text, $4::int, $5::timestamptz, p.retail_price_usd, p.price_usd, p.benefit_months, p.usage_unit_label
    FROM product AS p
)
SELECT p.organization_id AS "organizationId", p.sandbox, p.key AS "productKey", p.retail_price_usd AS "retailPriceUsd", p.price_usd AS "priceUsd",
       date_trunc('milliseconds', clock_timestamp()) AS "issuedAt"
  FROM product AS p;

-- name: count_issued_vouchers
-- The number of vouchers of all batches together.
SELECT coalesce(sum(b.voucher_count), 0) AS count FROM batches AS b;

-- name: find_batch_size(id)
SELECT b.voucher_count AS count FROM batches AS b WHERE b.id = $1::text;

-- name: select_windows(batch_id)
-- The windows of a batch, at most one of each kind.
SELECT w.kind, w.opens_at AS "opensAt", w.closes_at AS "closesAt" FROM batch_windows AS w WHERE w.batch_id = $1::text;

-- name: find_batch(id)
-- A batch with the number of its vouchers in each status. left: the vouchers that users can acquire while a window is
-- open, including reserved ones, or 0 after the batch's end. Reads all vouchers of the batch.
SELECT b.id, b.product_id AS "productId", p.name AS "productName", b.audience, b.voucher_count AS count, b.valid_until AS "validUntil",
       b.retail_price_usd AS "retailPriceUsd", b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths",
       b.usage_unit_label AS "usageUnitLabel", b.created_at AS "createdAt", b.suspended_at AS "suspendedAt",
       CASE WHEN b.suspended_at IS NOT NULL THEN b.suspension_reason END AS "suspensionReason", o.sandbox,
       count(v.id) FILTER (WHERE v.status = 'Active' AND voucher_end(v.valid_until, b.issued_until, b.valid_until) > clock_timestamp()
                             AND NOT voucher_suspended(v.suspension, b.suspended_at)) AS active,
       count(v.id) FILTER (WHERE v.status = 'Active' AND voucher_end(v.valid_until, b.issued_until, b.valid_until) > clock_timestamp()
                             AND voucher_suspended(v.suspension, b.suspended_at)) AS suspended,
       count(v.id) FILTER (WHERE v.status = 'Active' AND voucher_end(v.valid_until, b.issued_until, b.valid_until) <= clock_timestamp()) AS expired,
       count(v.id) FILTER (WHERE v.status = 'Redeemed') AS redeemed,
       count(v.id) FILTER (WHERE v.status = 'Voided') AS voided,
       count(v.id) FILTER (WHERE v.pickable AND b.valid_until > clock_timestamp() AND NOT voucher_suspended(v.suspension, b.suspended_at)) AS "left"
  FROM batches AS b
  JOIN products AS p ON p.id = b.product_id
  JOIN brands AS br ON br.id = p.brand_id
  JOIN organizations AS o ON o.id = br.organization_id
  LEFT JOIN vouchers AS v ON v.batch_id = b.id
 WHERE b.id = $1::text
 GROUP BY b.id, p.name, o.sandbox;

-- name: select_organization_names(limit)
-- The newest organizations.
SELECT o.id, o.name, o.sandbox FROM organizations AS o ORDER BY o.id DESC LIMIT $1::int;

-- name: select_brands_of_organization(organization_id)
SELECT b.id, b.name, b.organization_id AS "organizationId", o.sandbox
  FROM brands AS b JOIN organizations AS o ON o.id = ANY (ARRAY[b.organization_id]) WHERE b.organization_id = $1::text ORDER BY b.id;

-- name: select_batches_of_organization(organization_id, before?, limit, counted_max)
-- The newest batches of an organization before an id, newest first. left: as in find_batch, but at most counted_max. It
-- includes vouchers that were suspended individually, and those of expired batches (isValid is false).
SELECT o.id, o."productName", o.count, o."validUntil", o."validUntil" > clock_timestamp() AS "isValid", w.has AS "hasWindow", supply.left
  FROM (SELECT b.id, p.name AS "productName", b.voucher_count AS count, b.valid_until AS "validUntil", b.suspended_at
          FROM brands AS br JOIN products AS p ON p.brand_id = br.id JOIN batches AS b ON b.product_id = p.id
         WHERE br.organization_id = $1::text AND ($2::text IS NULL OR b.id < $2::text)
         ORDER BY b.id DESC LIMIT $3::int) AS o
 CROSS JOIN LATERAL (SELECT EXISTS (SELECT 1 FROM batch_windows AS bw WHERE bw.batch_id = o.id) AS has) AS w
 CROSS JOIN LATERAL (
       SELECT count(*)::int AS left FROM (SELECT 1 FROM vouchers AS v WHERE v.batch_id = o.id AND v.pickable AND o.suspended_at IS NULL LIMIT $4::int) AS up_to_limit
       ) AS supply
 ORDER BY o.id DESC;

-- name: find_lineage(id)
-- The entity with an id, and the entities above it: a voucher's batch, product, brand and organization.
SELECT o.id AS "organizationId", o.name AS "organizationName", o.sandbox, o.time_zone AS "timeZone", br.id AS "brandId", br.name AS "brandName", p.id AS "productId",
       p.name AS "productName", b.id AS "batchId", b.voucher_count AS "voucherCount", b.valid_until AS "validUntil", b.price_usd AS "priceUsd",
       v.id AS "voucherId", v.code, c.id AS "contractId", c.user_id AS "userId",
       CASE WHEN c.status = 'Active' AND c.ends_at <= clock_timestamp() THEN 'Ended' ELSE c.status END AS "contractStatus",
       c.ends_at AS "contractEndsAt", k.id AS "keyId", k.label AS "keyLabel", w.id AS "webhookId", w.url
  FROM (SELECT $1::text AS id) AS named
  LEFT JOIN vouchers AS v ON v.id = named.id
  LEFT JOIN batches AS b ON b.id = COALESCE(v.batch_id, named.id)
  LEFT JOIN products AS p ON p.id = COALESCE(b.product_id, named.id)
  LEFT JOIN referrer_contracts AS c ON c.id = named.id
  LEFT JOIN brands AS br ON br.id = COALESCE(p.brand_id, c.brand_id, named.id)
  LEFT JOIN api_keys AS k ON k.id = named.id
  LEFT JOIN webhook_endpoints AS w ON w.id = named.id AND w.deleted_at IS NULL
  JOIN organizations AS o ON o.id = COALESCE(br.organization_id, k.organization_id, w.organization_id, named.id);

-- name: is_past(at)
-- Whether a time has passed by the database's clock.
SELECT $1::timestamptz <= clock_timestamp() AS past;

-- name: extend_batch(id, valid_until)
-- Moves the end of a batch to a later time, unless it already ends at that time or later. Its vouchers keep their ends.
UPDATE batches AS b SET valid_until = $2::timestamptz, issued_until = coalesce(b.issued_until, b.valid_until)
 WHERE b.id = $1::text AND b.valid_until < $2::timestamptz;

-- name: insert_member(organization_id, user_id, role)
-- Makes a user a member of an organization, or changes their role.
INSERT INTO members (organization_id, user_id, role) VALUES ($1::text, $2::text, $3::text)
    ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role;

-- name: insert_window(batch_id, kind, opens_at?, closes_at?)
INSERT INTO batch_windows (batch_id, kind, opens_at, closes_at) VALUES ($1::text, $2::text, $3::timestamptz, $4::timestamptz);
