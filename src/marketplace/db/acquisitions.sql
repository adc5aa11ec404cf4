-- name: read_sources(way, id, kind, not_counted?, latest?)
-- A source is a listing, product or link: `way` says which, and `id` is its id or code. Finds each source's product, a
-- link's contract, and the product's valid batches with a window of `kind` (claim or buy). For a listing, finds only
-- its own batch. Returns one row per source and batch, or one row without a batch. The product is null if the source
-- does not exist. `supply` is `left` if the batch has a voucher that can be acquired and is not in not_counted, `held`
-- if only suspended vouchers are left, and otherwise `none`. Vouchers that other transactions have locked count too.
-- `supply` is null if not_counted is null. OFFSET 0 prevents a plan that reads whole tables.
SELECT (w.n - 1)::int AS n, clock.now, p.id AS "product.id", p.brand_id AS "product.brandId",
       br.organization_id AS "product.organizationId", g.sandbox AS "product.sandbox", s.contract_id AS "link.contractId", s.referrer_id AS "link.referrerId",
       s.status AS "link.status", s.ends_at AS "link.endsAt", o.id AS "offer.batchId", o.audience AS "offer.audience",
       o.valid_until AS "offer.validUntil", o.suspended AS "offer.suspended", o.opens_at AS "offer.opensAt", o.closes_at AS "offer.closesAt",
       CASE WHEN $4::text[] IS NULL THEN NULL
            WHEN EXISTS (
                 SELECT 1 FROM vouchers AS v
                  WHERE v.batch_id = o.id AND v.pickable AND CASE WHEN v.suspension IS NULL THEN true END AND v.id <> ALL ($4::text[])
                    AND NOT EXISTS (SELECT 1 FROM reservations AS h
                                     WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > least(clock.now, $5::timestamptz) OFFSET 0)
                 ) THEN 'left'
            WHEN EXISTS (
                 SELECT 1 FROM vouchers AS v WHERE v.batch_id = o.id AND v.pickable AND CASE WHEN v.suspension IS NOT NULL THEN true END OFFSET 0
                 ) THEN 'held'
            ELSE 'none' END AS "offer.supply"
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS w (way, id, kind, n)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
  LEFT JOIN LATERAL (
       SELECT q.id AS product_id, NULL AS batch_id, NULL AS contract_id, NULL AS referrer_id, NULL AS status, NULL::timestamptz AS ends_at
         FROM products AS q WHERE w.way = 'product' AND q.id = w.id
        UNION ALL
       SELECT d.product_id, d.id, NULL, NULL, NULL, NULL
         FROM listings AS l JOIN batches AS d ON d.id = ANY (ARRAY[l.batch_id]) WHERE w.way = 'listing' AND l.id = w.id
        UNION ALL
       SELECT r.product_id, NULL, c.id, c.user_id, c.status, c.ends_at
         FROM referral_links AS r JOIN referrer_contracts AS c ON c.id = ANY (ARRAY[r.contract_id])
        WHERE w.way = 'link' AND r.code = w.id
       ) AS s ON true
  LEFT JOIN products AS p ON p.id = ANY (ARRAY[s.product_id])
  LEFT JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  LEFT JOIN organizations AS g ON g.id = ANY (ARRAY[br.organization_id])
  LEFT JOIN LATERAL (
       SELECT b.id, b.audience, b.valid_until, b.suspended_at IS NOT NULL AS suspended, t.opens_at, t.closes_at
         FROM batches AS b JOIN batch_windows AS t ON t.batch_id = ANY (ARRAY[b.id]) AND t.kind = w.kind
        WHERE b.product_id = p.id AND b.id = coalesce(s.batch_id, b.id) AND b.valid_until > least(clock.now, $5::timestamptz) OFFSET 0
       ) AS o ON true;

-- name: read_acquirers(user_id, organization_id, brand_id, product_id, payment_ref?)
-- For each request, finds the user's role in the organization, the user's Active contract with the brand, and the
-- voucher that the user got from an earlier, equal claim or purchase. Returns one row per request, in any order.
SELECT (w.n - 1)::int AS n, m.role, c.id AS "contract.id", c.status AS "contract.status", c.ends_at AS "contract.endsAt",
       v.id AS "earlier.id", v.organization_id AS "earlier.organizationId", v.code_key AS "earlier.codeKey"
  FROM (SELECT u.*, CASE WHEN (SELECT k.used FROM erasure_keys AS k WHERE k.owner = '')
                         THEN erased_form('', u.user_id) END AS erased_user
          FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
               WITH ORDINALITY AS u (user_id, organization_id, brand_id, product_id, payment_ref, n) OFFSET 0) AS w
  LEFT JOIN members AS m ON m.organization_id = w.organization_id AND m.user_id = w.user_id
  LEFT JOIN referrer_contracts AS c ON c.user_id = w.user_id AND c.brand_id = w.brand_id AND c.status = 'Active'
  LEFT JOIN LATERAL (
       SELECT k.voucher_id FROM claims AS k
        WHERE w.payment_ref IS NULL AND k.user_id = ANY (ARRAY[w.user_id, w.erased_user]) AND k.product_id = w.product_id
        UNION ALL
       SELECT s.voucher_id FROM purchases AS s
        WHERE s.organization_id = w.organization_id AND s.user_id = ANY (ARRAY[w.user_id, w.erased_user])
          AND s.payment_ref = ANY (ARRAY[w.payment_ref, CASE WHEN w.erased_user IS NOT NULL
                                                             THEN erased_form(w.organization_id, w.payment_ref) END])
       ) AS e ON true
  LEFT JOIN vouchers AS v ON v.id = ANY (ARRAY[e.voucher_id]);

-- name: pick_free_vouchers(batch_id, except, limit, latest?)
-- Locks the next unlocked vouchers that users can acquire from a batch. Excludes vouchers that are suspended
-- individually, or that have a live reservation in this statement's snapshot. A later statement must read the state of
-- the locked vouchers again. CASE affects only the plan: without statistics, Postgres expects that IS NULL is true for
-- few rows, and sorts them. With CASE, it expects half of the rows, and reads the index in order.
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND CASE WHEN v.suspension IS NULL THEN true END AND v.id <> ALL ($2::text[])
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT least(clock_timestamp(), $4::timestamptz)))
 ORDER BY v.serial LIMIT $3::int FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: pick_voucher(batch_id, latest?)
-- Like pick_free_vouchers, for one voucher. Waits if the voucher is locked, because the transaction that holds the lock
-- may roll back.
SELECT v.id FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.pickable AND CASE WHEN v.suspension IS NULL THEN true END
   AND NOT EXISTS (SELECT 1 FROM reservations AS h
                    WHERE h.voucher_id = v.id AND h.state = 'Live' AND h.expires_at > (SELECT least(clock_timestamp(), $2::timestamptz)))
 ORDER BY v.serial LIMIT 1 FOR NO KEY UPDATE OF v;

-- name: set_damaged_aside(voucher_id)
-- Makes locked vouchers permanently unavailable to users.
UPDATE vouchers AS v SET pickable = false WHERE v.id = ANY ($1::text[]);

-- name: insert_claims(user_id, product_id, voucher_id, now)
-- Inserts claims in key order, so that two writers of the same claims cannot deadlock. A user has at most one claim of
-- a product. Waits for a transaction that is inserting the same claim. Raises VS001 if a claim exists. The caller then
-- decides again.
WITH claimed AS (
  INSERT INTO claims (claimed_at, user_id, product_id, voucher_id)
  SELECT $4::timestamptz, w.user_id, w.product_id, w.voucher_id
    FROM unnest($1::text[], $2::text[], $3::text[]) AS w (user_id, product_id, voucher_id)
   ORDER BY w.user_id COLLATE "C", w.product_id COLLATE "C"
      ON CONFLICT (user_id, product_id) DO NOTHING
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'new claims') FROM claimed;

-- name: insert_purchases(organization_id, user_id, payment_ref, voucher_id, now)
-- Like insert_claims, for purchases. A user makes at most one purchase with a payment reference in an organization.
WITH bought AS (
  INSERT INTO purchases (bought_at, organization_id, user_id, payment_ref, voucher_id)
  SELECT $5::timestamptz, w.organization_id, w.user_id, w.payment_ref, w.voucher_id
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS w (organization_id, user_id, payment_ref, voucher_id)
   ORDER BY w.organization_id COLLATE "C", w.user_id COLLATE "C", w.payment_ref COLLATE "C"
      ON CONFLICT (organization_id, user_id, payment_ref) DO NOTHING
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'new purchases') FROM bought;

-- name: acquire_vouchers(voucher_id, last_sequence)
-- Makes locked, Active vouchers unavailable to other users, and adds one to the last_sequence of each for its Pending
-- event. Raises VS001 if a voucher is no longer available or its chain has changed. IS NOT FALSE keeps the planner from
-- the index vouchers_pickable.
WITH acquired AS (
  UPDATE vouchers AS v SET pickable = false, last_sequence = w.last_before + 1
    FROM unnest($1::text[], $2::int[]) AS w (id, last_before)
   WHERE v.id = ANY (ARRAY[w.id]) AND v.pickable IS NOT FALSE AND v.status = 'Active' AND v.suspension IS NULL AND v.last_sequence = w.last_before
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Active vouchers in a window with an unchanged chain') FROM acquired;
