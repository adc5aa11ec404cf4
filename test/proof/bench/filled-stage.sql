-- Fills a database with vouchers and their histories, as years of service would leave them. Everything about a voucher
-- follows from its number, so that a benchmark knows ids and codes without reading the tables. Words in braces are
-- values of the plan (filled-stage.ts): Postgres inlines functions that read no table and have one SELECT.
--
-- Three quarters of the vouchers are in batches of 100 000 for partners. Of the first of these, every second is
-- redeemed, in random order, 10 000 a day up to now. Half of the redemptions use a ticket. The last quarter of the
-- vouchers is one batch for claims, and the first quarter of this batch is claimed. Tiles and bundles of the log are
-- not made, because no partner request uses them.

-- name: make_symbols
-- Defines a function that writes a time as the first ten symbols of a TypeID.
CREATE FUNCTION pg_temp.symbols_of(ms bigint) RETURNS TABLE (symbols text) LANGUAGE sql IMMUTABLE AS $$
  SELECT substr(a, (ms >> 45)::int + 1, 1) || substr(a, (ms >> 40 & 31)::int + 1, 1)
         || substr(a, (ms >> 35 & 31)::int + 1, 1) || substr(a, (ms >> 30 & 31)::int + 1, 1)
         || substr(a, (ms >> 25 & 31)::int + 1, 1) || substr(a, (ms >> 20 & 31)::int + 1, 1)
         || substr(a, (ms >> 15 & 31)::int + 1, 1) || substr(a, (ms >> 10 & 31)::int + 1, 1)
         || substr(a, (ms >> 5 & 31)::int + 1, 1) || substr(a, (ms & 31)::int + 1, 1)
    FROM (VALUES ('0123456789abcdefghjkmnpqrstvwxyz')) AS v (a)
$$;

-- name: make_random
-- Defines a function that makes the random symbols of a TypeID from a hash. They follow the symbols of the time.
CREATE FUNCTION pg_temp.random_of(hash text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'e' || left(hash, 2) || '8' || substr(hash, 3, 10) || '00'
$$;

-- name: make_iso
CREATE FUNCTION pg_temp.iso(at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
$$;

-- name: make_batches
-- Makes the table of batches, one issued each hour before the first redemption. Batch -1 is the batch for claims.
CREATE TEMP TABLE filled_batches AS
SELECT s.batch, 'bat_' || t.symbols || pg_temp.random_of(md5('batch ' || s.batch)) AS id, left(t.symbols, 7) AS prefix,
       b.issued_at, pg_temp.iso(b.issued_at) AS iso,
       CASE WHEN s.batch < 0 THEN {vouchers} - {bulk} ELSE least(100000, {bulk} - s.batch * 100000) END AS size
  FROM generate_series(-1, ({bulk} - 1) / 100000) AS s (batch)
 CROSS JOIN LATERAL (SELECT date_trunc('milliseconds', timestamptz '{endsAt}' - {redeemed} * interval '8.64 seconds'
                                       - (2 + {bulk} / 100000 - s.batch) * interval '1 hour') AS issued_at) AS b
 CROSS JOIN LATERAL pg_temp.symbols_of((extract(epoch FROM b.issued_at) * 1000)::bigint) AS t;

-- name: make_batches_key
ALTER TABLE filled_batches ADD PRIMARY KEY (batch);

-- name: make_voucher
-- Defines a function that makes the voucher with a number, counted from 0, and its first event.
CREATE FUNCTION pg_temp.voucher_of(n bigint) RETURNS TABLE (
  id text, code text, code_key text, serial bigint, batch_id text, issued_at timestamptz, payload text
) LANGUAGE sql STABLE AS $$
  SELECT v.id, v.code, v.key, s.serial, b.id, b.issued_at,
         '{"actorConnectedId":null,"actorIsEmployee":null,"code":"VCH001","data":{"audience":"OpenToAll","batchId":"'
         || b.id || '","nonce":"' || md5('first ' || n)
         || '","priceUsd":19.9,"productKey":"pass","retailPriceUsd":29.9,"serial":' || s.serial
         || ',"validUntil":"2040-01-01T00:00:00.000Z","voucherCode":"' || v.code
         || '"},"entityId":"' || v.id || '","entityType":"VoucherInstance","eventType":"voucher.instance.issued",'
         || '"occurredAt":"' || b.iso
         || '","previousHash":"0000000000000000000000000000000000000000000000000000000000000000","sequence":1,"v":1}'
    FROM (SELECT CASE WHEN n >= {bulk} THEN n - {bulk} ELSE n % 100000 END + 1 AS serial,
                 CASE WHEN n >= {bulk} THEN -1 ELSE n / 100000 END AS batch,
                 md5('voucher ' || n) AS hash, upper(left(md5('code ' || n), 16)) AS key OFFSET 0) AS s
    JOIN filled_batches AS b ON b.batch = s.batch
   CROSS JOIN LATERAL (
         SELECT s.key, left(s.key, 4) || '-' || substr(s.key, 5, 4) || '-' || substr(s.key, 9, 4) || '-'
                       || substr(s.key, 13) AS code,
                'vch_' || b.prefix || substr(t.symbols, 8) || pg_temp.random_of(s.hash) AS id
           FROM pg_temp.symbols_of(s.serial * 32767 / b.size) AS t OFFSET 0
         ) AS v
$$;

-- name: make_redemption
-- Defines a function that makes redemption k. `previous` is the hash of the redeemed voucher's first event. Every
-- second redemption has a reservation from a minute before.
CREATE FUNCTION pg_temp.redemption_of(k bigint, id text, code text, serial bigint, previous bytea) RETURNS TABLE (
  at timestamptz, ticket text, redeem_code text, payload text
) LANGUAGE sql STABLE AS $$
  SELECT r.at, r.ticket, r.redeem_code,
         '{"actorConnectedId":"{keyId}","actorIsEmployee":null,"code":"VCH004","data":{"externalRef":"order-' || k
         || '","nonce":"' || md5('second ' || k) || '","priceUsd":19.9,"redeemCode":"' || r.redeem_code
         || '","retailPriceUsd":29.9,"serial":' || serial || ',"ticket":' || coalesce('"' || r.ticket || '"', 'null')
         || ',"voucherCode":"' || code || '"},"entityId":"' || id
         || '","entityType":"VoucherInstance","eventType":"voucher.instance.redeemed","occurredAt":"'
         || pg_temp.iso(r.at) || '","previousHash":"' || encode(previous, 'hex') || '","sequence":2,"v":1}'
    FROM (SELECT date_trunc('milliseconds', timestamptz '{endsAt}' - ({redeemed} - k) * interval '8.64 seconds') AS at,
                 upper(left(md5('redeem ' || k), 12)) AS key OFFSET 0) AS o
   CROSS JOIN LATERAL pg_temp.symbols_of((extract(epoch FROM o.at) * 1000)::bigint - 60000) AS t
   CROSS JOIN LATERAL (
         SELECT o.at, left(o.key, 4) || '-' || substr(o.key, 5, 4) || '-' || substr(o.key, 9) AS redeem_code,
                CASE WHEN k % 2 = 0
                     THEN 'rsv_' || t.symbols || pg_temp.random_of(md5('ticket ' || k)) END AS ticket OFFSET 0) AS r
$$;

-- name: make_claim
-- Defines a function that makes claim c. `previous` is the hash of the claimed voucher's first event.
CREATE FUNCTION pg_temp.claim_of(c bigint, id text, code text, serial bigint, previous bytea) RETURNS TABLE (
  user_id text, at timestamptz, data text, payload text
) LANGUAGE sql STABLE AS $$
  SELECT w.user_id, w.at, w.data,
         '{"actorConnectedId":"' || w.user_id || '","actorIsEmployee":false,"code":"VCH002","data":' || w.data
         || ',"entityId":"' || id || '","entityType":"VoucherInstance","eventType":"voucher.instance.claimed",'
         || '"occurredAt":"' || pg_temp.iso(w.at) || '","previousHash":"' || encode(previous, 'hex')
         || '","sequence":2,"v":1}'
    FROM (SELECT 'user-' || md5('user ' || c)::uuid AS user_id,
                 date_trunc('milliseconds', timestamptz '{endsAt}' - ({claimed} - c) * {redeemed} / {claimed}
                                                                    * interval '8 seconds') AS at,
                 '{"audience":"OpenToAll","audienceRule":"open","nonce":"' || md5('claim ' || c) || '","serial":'
                 || serial || ',"voucherCode":"' || code || '"}' AS data OFFSET 0) AS w
$$;

-- name: insert_batches
INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months,
                     created_at)
SELECT b.id, CASE WHEN b.batch < 0 THEN '{claimProductId}' ELSE '{bulkProductId}' END, b.size, '2040-01-01T00:00:00Z',
       29.9, 19.9, 3, b.issued_at
  FROM filled_batches AS b;

-- name: insert_windows
INSERT INTO batch_windows (batch_id, kind) SELECT b.id, 'claim' FROM filled_batches AS b WHERE b.batch < 0;

-- name: insert_bulk_product
INSERT INTO products (id, brand_id, key, name, type, retail_price_usd, price_usd, benefit_months)
SELECT '{bulkProductId}', o.brand_id, 'bulk', o.name, o.type, o.retail_price_usd, o.price_usd, o.benefit_months
  FROM products AS o WHERE o.id = '{claimProductId}';

-- name: insert_vouchers
-- Inserts the vouchers from $1 up to $2, their first events, and leaf batches of 1 000. `k` is the redemption's number.
WITH made AS MATERIALIZED (
  SELECT n, v.*, sha256(convert_to(v.payload, 'UTF8')) AS hash, n >= {bulk} AS is_claim,
         CASE WHEN n < 2 * {redeemed} AND n % 2 = 0 THEN (n / 2 * {inverse}) % {redeemed} END AS k
    FROM generate_series($1::bigint, $2::bigint - 1) AS n CROSS JOIN LATERAL pg_temp.voucher_of(n) AS v
), second AS (
  SELECT m.n, r.at, r.payload
    FROM made AS m CROSS JOIN LATERAL pg_temp.redemption_of(m.k, m.id, m.code, m.serial, m.hash) AS r
   WHERE m.k IS NOT NULL
   UNION ALL
  SELECT m.n, NULL, c.payload
    FROM made AS m CROSS JOIN LATERAL pg_temp.claim_of(m.n - {bulk}, m.id, m.code, m.serial, m.hash) AS c
   WHERE m.is_claim AND m.n < {bulk} + {claimed}
), vouchers_in AS (
  INSERT INTO vouchers (redeemed_at, serial, last_sequence, sealed_sequence, id, organization_id, batch_id, status,
                        code, code_key, sealed_hash, pickable)
  SELECT s.at, m.serial, q.sequence, q.sequence, m.id, '{organizationId}', m.batch_id,
         CASE WHEN m.k IS NULL THEN 'Active' ELSE 'Redeemed' END, m.code, m.code_key,
         coalesce(sha256(convert_to(s.payload, 'UTF8')), m.hash), m.is_claim AND s.n IS NULL
    FROM made AS m LEFT JOIN second AS s ON s.n = m.n
   CROSS JOIN LATERAL (SELECT CASE WHEN s.n IS NULL THEN 1 ELSE 2 END AS sequence) AS q
   ORDER BY m.n
), leaves_in AS (
  INSERT INTO log_batches (id, first_index, leaves)
  SELECT m.n / 1000 + 1, min(m.n), count(*) FROM made AS m GROUP BY m.n / 1000
)
INSERT INTO voucher_events (occurred_at, log_slot, sequence, voucher_id, seal_status, event_type, previous_hash,
                            record_hash, payload)
SELECT m.issued_at, (m.n / 1000 + 1) * 4096 + m.n % 1000, 1, m.id, 'Sealed', 'voucher.instance.issued',
       decode(repeat('0', 64), 'hex'), m.hash, m.payload
  FROM made AS m ORDER BY m.n;

-- name: insert_redemptions
-- Inserts the redemptions from $1 up to $2, by time, with their reservations, events, and leaf batches of 20.
WITH made AS MATERIALIZED (
  SELECT k, v.id, h.hash AS previous, r.*, {vouchers} / 1000 + 2 + k / 20 AS leaf_batch
    FROM generate_series($1::bigint, $2::bigint - 1) AS k
   CROSS JOIN LATERAL pg_temp.voucher_of((k * {stride}) % {redeemed} * 2) AS v
   CROSS JOIN LATERAL (SELECT sha256(convert_to(v.payload, 'UTF8')) AS hash OFFSET 0) AS h
   CROSS JOIN LATERAL pg_temp.redemption_of(k, v.id, v.code, v.serial, h.hash) AS r
), reservations_in AS (
  INSERT INTO reservations (started_at, expires_at, ended_at, ticket, voucher_id, organization_id, key_id, state,
                            token_secret_id)
  SELECT m.at - interval '1 minute', m.at + interval '14 minutes', m.at, m.ticket, m.id, '{organizationId}', '{keyId}',
         'Consumed', '00000000'
    FROM made AS m WHERE m.ticket IS NOT NULL ORDER BY m.k
), redemptions_in AS (
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code,
                           external_ref)
  SELECT m.at, m.id, '{organizationId}', '{keyId}', md5('attempt ' || m.k)::uuid, m.ticket, m.redeem_code,
         'order-' || m.k
    FROM made AS m ORDER BY m.k
), leaves_in AS (
  INSERT INTO log_batches (id, first_index, leaves)
  SELECT m.leaf_batch, {vouchers} + min(m.k), count(*) FROM made AS m GROUP BY m.leaf_batch
)
INSERT INTO voucher_events (occurred_at, log_slot, sequence, voucher_id, seal_status, event_type, actor_connected_id,
                            previous_hash, record_hash, payload)
SELECT m.at, m.leaf_batch * 4096 + m.k % 20, 2, m.id, 'Sealed', 'voucher.instance.redeemed', '{keyId}', m.previous,
       sha256(convert_to(m.payload, 'UTF8')), m.payload
  FROM made AS m ORDER BY m.k;

-- name: insert_claims
-- Inserts the claims from $1 up to $2, by time, with their sealed events, and leaf batches of 20.
WITH made AS MATERIALIZED (
  SELECT c, v.id, e.*, h.hash AS previous, {vouchers} / 1000 + 3 + {redeemed} / 20 + c / 20 AS leaf_batch
    FROM generate_series($1::bigint, $2::bigint - 1) AS c
   CROSS JOIN LATERAL pg_temp.voucher_of({bulk} + c) AS v
   CROSS JOIN LATERAL (SELECT sha256(convert_to(v.payload, 'UTF8')) AS hash OFFSET 0) AS h
   CROSS JOIN LATERAL pg_temp.claim_of(c, v.id, v.code, v.serial, h.hash) AS e
), claims_in AS (
  INSERT INTO claims (claimed_at, user_id, product_id, voucher_id)
  SELECT m.at, m.user_id, '{claimProductId}', m.id FROM made AS m ORDER BY m.c
), leaves_in AS (
  INSERT INTO log_batches (id, first_index, leaves)
  SELECT m.leaf_batch, {vouchers} + {redeemed} + min(m.c), count(*) FROM made AS m GROUP BY m.leaf_batch
)
INSERT INTO voucher_events (occurred_at, log_slot, sequence, actor_is_employee, voucher_id, seal_status, event_type,
                            actor_connected_id, previous_hash, record_hash, data, payload)
SELECT m.at, m.leaf_batch * 4096 + m.c % 20, 2, false, m.id, 'Sealed', 'voucher.instance.claimed', m.user_id,
       m.previous, sha256(convert_to(m.payload, 'UTF8')), m.data::json, m.payload
  FROM made AS m ORDER BY m.c;

-- name: move_sequence
SELECT setval('log_batch_ids', (SELECT max(b.id) FROM log_batches AS b));

-- name: select_constraints
-- Lists constraints of the tables $1, which the benchmark drops for a fast load and creates again. Foreign keys first.
SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', c.conrelid::regclass, c.conname) AS drop,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s%s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid),
              CASE WHEN c.contype = 'f' THEN ' NOT VALID' ELSE '' END) AS make
  FROM pg_constraint AS c
 WHERE (c.conrelid::regclass::text = ANY ($1::text[]) AND c.contype IN ('p', 'u', 'f'))
    OR (c.confrelid::regclass::text = ANY ($1::text[]) AND c.contype = 'f')
 ORDER BY c.contype = 'f' DESC;

-- name: select_indexes
SELECT format('DROP INDEX %s', x.indexrelid::regclass) AS drop, pg_get_indexdef(x.indexrelid) AS make
  FROM pg_index AS x
 WHERE x.indrelid::regclass::text = ANY ($1::text[])
   AND NOT EXISTS (SELECT FROM pg_constraint AS c WHERE c.conindid = x.indexrelid);

-- name: select_subjects
-- Computes ids and codes of vouchers from their numbers, without reading the tables.
SELECT v.id, v.code, '' AS token FROM unnest($1::bigint[]) AS n CROSS JOIN LATERAL pg_temp.voucher_of(n) AS v;
