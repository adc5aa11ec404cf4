-- name: find_brand_face(brand_id)
SELECT br.name AS brand, br.colour, l.name AS logo
  FROM brands AS br LEFT JOIN brand_logos AS l ON l.brand_id = br.id WHERE br.id = $1::text;

-- name: find_logo(name)
-- The content of a logo. Several brands may have the same one.
SELECT l.content FROM brand_logos AS l WHERE l.name = $1::text LIMIT 1;

-- name: update_brand_colour(brand_id, colour?)
UPDATE brands SET colour = $2::text WHERE id = $1::text;

-- name: put_logo(brand_id, name?, content?)
-- Replaces a brand's logo. Without a name, removes it.
INSERT INTO brand_logos (brand_id, name, content) VALUES ($1::text, $2::text, $3::bytea)
    ON CONFLICT (brand_id) DO UPDATE SET name = excluded.name, content = excluded.content;

-- name: find_voucher_face(voucher_id)
-- What the public page of a voucher shows, and the current time. Pages use the organization's time zone.
SELECT v.status, voucher_end(v.valid_until, b.issued_until, b.valid_until) AS "validUntil", voucher_suspended(v.suspension, b.suspended_at) AS suspended,
       clock_timestamp() AS now, b.retail_price_usd AS "retailPriceUsd", b.benefit_months AS "benefitMonths", p.name AS "productName",
       br.name AS brand, br.colour, l.name AS logo, o.time_zone AS "timeZone"
  FROM vouchers AS v
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS o ON o.id = ANY (ARRAY[br.organization_id])
  LEFT JOIN brand_logos AS l ON l.brand_id = ANY (ARRAY[br.id])
 WHERE v.id = $1::text;
