-- name: lock_entity
-- Acts on one entity take turns, even on one that does not exist yet. Ends with the transaction. The first number keeps these locks
-- apart from every other advisory lock.
-- $1 entity_type text, $2 entity_id text
SELECT pg_advisory_xact_lock(1633907828, hashtext($1::text || ' ' || $2::text));

-- name: state_of_organization
-- $1 id text
SELECT o.name, o.created_at FROM organizations AS o WHERE o.id = $1::text;

-- name: state_of_brand
-- $1 id text
SELECT b.organization_id, b.name, b.created_at FROM brands AS b WHERE b.id = $1::text;

-- name: state_of_product
-- $1 id text
SELECT p.brand_id, p.key, p.name, p.type, p.retail_price_usd, p.price_usd, p.benefit_months, p.usage_unit_label, p.created_at
  FROM products AS p WHERE p.id = $1::text;

-- name: state_of_api_key
-- A key without its secrets, but with when each of them ends, the oldest first; NULL: the current one.
-- $1 id text
SELECT k.organization_id, k.label, k.scopes, k.allow_ips::text[] AS allow_ips, k.created_at, k.expires_at, k.revoked_at,
       ARRAY(SELECT s.expires_at FROM api_key_secrets AS s WHERE s.key_id = k.id ORDER BY s.created_at) AS secrets_expire_at
  FROM api_keys AS k WHERE k.id = $1::text;

-- name: state_of_batch
-- A batch with its windows, without its vouchers.
-- $1 id text
SELECT b.product_id, b.audience, b.voucher_count, b.valid_until, b.retail_price_usd, b.price_usd, b.benefit_months, b.usage_unit_label,
       b.created_at, w.windows, w.windows_open_at, w.windows_close_at
  FROM batches AS b
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(o.kind ORDER BY o.kind), '{}') AS windows,
              coalesce(array_agg(o.opens_at ORDER BY o.kind), '{}') AS windows_open_at,
              coalesce(array_agg(o.closes_at ORDER BY o.kind), '{}') AS windows_close_at
         FROM batch_windows AS o WHERE o.batch_id = b.id
       ) AS w
 WHERE b.id = $1::text;

-- name: state_of_voucher
-- A voucher without its code. Locks it: whoever moves a voucher has its row first.
-- $1 id text
SELECT v.organization_id, v.batch_id, v.serial, v.status, v.redeemed_at, v.last_sequence
  FROM vouchers AS v WHERE v.id = $1::text FOR UPDATE;

-- name: state_of_member
-- $1 organization_id and user_id text, with a slash between them
SELECT m.role, m.created_at FROM members AS m
 WHERE m.organization_id = split_part($1::text, '/', 1) AND m.user_id = substr($1::text, strpos($1::text, '/') + 1);

-- name: state_of_contract
-- Locks the contract: the sweeper ends contracts, too.
-- $1 id text
SELECT c.brand_id, c.user_id, c.status, c.ends_at, c.offered_at, c.changed_at
  FROM referrer_contracts AS c WHERE c.id = $1::text FOR NO KEY UPDATE;

-- name: state_of_link
-- A link by the hash of its code: the code opens supply to whoever has it.
-- $1 SHA-256 of the code in hex text
SELECT l.contract_id, l.product_id, l.brand_id, l.created_at
  FROM referral_links AS l WHERE encode(sha256(convert_to(l.code, 'UTF8')), 'hex') = $1::text;

-- name: state_of_listing
-- $1 id text
SELECT l.batch_id, l.created_at FROM listings AS l WHERE l.id = $1::text;

-- name: state_of_roles
-- The roles of the service and voucherctl, and every right in this database that one of them or PUBLIC was given, the default ones of
-- PUBLIC included.
-- $1 name of the connected database text
WITH given AS (
  SELECT acl.grantee, acl.privilege_type || ' ON DATABASE ' || d.datname AS what
    FROM pg_database AS d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS acl WHERE d.datname = $1::text
   UNION ALL
  SELECT acl.grantee, acl.privilege_type || ' ON SCHEMA ' || n.nspname
    FROM pg_namespace AS n, aclexplode(n.nspacl) AS acl WHERE n.nspname = 'public'
   UNION ALL
  SELECT acl.grantee, acl.privilege_type || ' ON ' || c.relname
    FROM pg_class AS c, aclexplode(c.relacl) AS acl WHERE c.relnamespace = 'public'::regnamespace
   UNION ALL
  SELECT acl.grantee, acl.privilege_type || ' (' || a.attname || ') ON ' || c.relname
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid, aclexplode(a.attacl) AS acl
   WHERE c.relnamespace = 'public'::regnamespace
)
SELECT ARRAY(SELECT r.rolname || CASE WHEN r.rolcanlogin THEN ' LOGIN' ELSE ' NOLOGIN' END FROM pg_roles AS r
              WHERE r.rolname IN ('pva_api', 'pva_admin') ORDER BY 1) AS roles,
       ARRAY(SELECT coalesce(r.rolname, 'PUBLIC') || ' ' || g.what FROM given AS g LEFT JOIN pg_roles AS r ON r.oid = g.grantee
              WHERE g.grantee = 0 OR r.rolname IN ('pva_api', 'pva_admin') ORDER BY 1) AS rights;

-- name: insert_act
-- Who connected and when is the database's to say.
-- $1 os_user text, $2 host text, $3 command text, $4 arguments jsonb, $5 entity_type text, $6 entity_id text, $7 before jsonb or null,
-- $8 after jsonb or null
INSERT INTO admin_acts (os_user, host, command, arguments, entity_type, entity_id, before, after)
VALUES ($1::text, $2::text, $3::text, $4::jsonb, $5::text, $6::text, $7::jsonb, $8::jsonb);

-- name: select_acts
-- The newest acts, newest first.
-- $1 limit int
SELECT a.id, a.at, a.database_role, a.os_user, a.host, a.command, a.arguments, a.entity_type, a.entity_id, a.before, a.after
  FROM admin_acts AS a ORDER BY a.id DESC LIMIT $1::int;

-- name: select_acts_on_entity
-- The newest acts on one entity, newest first.
-- $1 entity_id text, $2 limit int
SELECT a.id, a.at, a.database_role, a.os_user, a.host, a.command, a.arguments, a.entity_type, a.entity_id, a.before, a.after
  FROM admin_acts AS a WHERE a.entity_id = $1::text ORDER BY a.id DESC LIMIT $2::int;
