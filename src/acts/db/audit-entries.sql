-- name: lock_entity(entity_type, entity_id)
-- Serializes changes of one entity until the transaction ends, even if the entity does not exist yet. The first number
-- separates these locks from all other advisory locks.
SELECT pg_advisory_xact_lock(1633907828, hashtext($1::text || ' ' || $2::text));

-- name: state_of_organization(id)
SELECT o.name, o.sandbox, o.time_zone AS "timeZone", o.created_at AS "createdAt" FROM organizations AS o WHERE o.id = $1::text;

-- name: state_of_brand(id)
SELECT b.organization_id AS "organizationId", b.name, b.colour, l.name AS logo, b.created_at AS "createdAt"
  FROM brands AS b LEFT JOIN brand_logos AS l ON l.brand_id = b.id WHERE b.id = $1::text;

-- name: state_of_product(id)
SELECT p.brand_id AS "brandId", p.key, p.name, p.type, p.retail_price_usd AS "retailPriceUsd", p.price_usd AS "priceUsd",
       p.benefit_months AS "benefitMonths", p.usage_unit_label AS "usageUnitLabel", p.created_at AS "createdAt"
  FROM products AS p WHERE p.id = $1::text;

-- name: state_of_api_key(id)
-- A key with the expiry times of its secrets, oldest secret first. NULL stands for the current secret.
SELECT k.organization_id AS "organizationId", k.label, k.scopes, k.allow_ips::text[] AS "allowIps", k.created_at AS "createdAt",
       k.expires_at AS "expiresAt", k.revoked_at AS "revokedAt", k.max_per_day AS "maxPerDay",
       k.max_amount_per_day_usd AS "maxAmountPerDayUsd",
       ARRAY(SELECT s.expires_at FROM api_key_secrets AS s WHERE s.key_id = k.id ORDER BY s.created_at) AS "secretsExpireAt"
  FROM api_keys AS k WHERE k.id = $1::text;

-- name: state_of_batch(id)
-- A batch with its windows, without its vouchers.
SELECT b.product_id AS "productId", b.audience, b.voucher_count AS "voucherCount", b.valid_until AS "validUntil",
       b.retail_price_usd AS "retailPriceUsd", b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths",
       b.usage_unit_label AS "usageUnitLabel", b.created_at AS "createdAt", b.suspended_at AS "suspendedAt", w.windows, w."windowsOpenAt", w."windowsCloseAt"
  FROM batches AS b
 CROSS JOIN LATERAL (
       SELECT coalesce(array_agg(o.kind ORDER BY o.kind), '{}') AS windows,
              coalesce(array_agg(o.opens_at ORDER BY o.kind), '{}') AS "windowsOpenAt",
              coalesce(array_agg(o.closes_at ORDER BY o.kind), '{}') AS "windowsCloseAt"
         FROM batch_windows AS o WHERE o.batch_id = b.id
       ) AS w
 WHERE b.id = $1::text;

-- name: state_of_voucher(id)
-- A voucher without its code. Locks the row, like every change of a voucher does first.
SELECT v.organization_id AS "organizationId", v.batch_id AS "batchId", v.serial, v.status, v.redeemed_at AS "redeemedAt",
       v.last_sequence AS "lastSequence", voucher_end(v.valid_until, b.issued_until, b.valid_until) AS "validUntil"
  FROM vouchers AS v JOIN batches AS b ON b.id = v.batch_id WHERE v.id = $1::text FOR UPDATE OF v;

-- name: state_of_member(organization_and_user)
-- A member. The parameter joins the ids of the organization and the user with a slash.
SELECT m.role, m.created_at AS "createdAt" FROM members AS m
 WHERE m.organization_id = split_part($1::text, '/', 1) AND m.user_id = substr($1::text, strpos($1::text, '/') + 1);

-- name: state_of_contract(id)
-- Locks the contract, because the sweeper also changes contracts.
SELECT c.brand_id AS "brandId", c.user_id AS "userId", c.status, c.ends_at AS "endsAt", c.offered_at AS "offeredAt",
       c.changed_at AS "changedAt"
  FROM referrer_contracts AS c WHERE c.id = $1::text FOR NO KEY UPDATE;

-- name: state_of_link(code_sha256)
-- A link, found by the hash of its code, because the code itself is a credential.
SELECT l.contract_id AS "contractId", l.product_id AS "productId", l.brand_id AS "brandId", l.created_at AS "createdAt"
  FROM referral_links AS l WHERE encode(sha256(convert_to(l.code, 'UTF8')), 'hex') = $1::text;

-- name: state_of_listing(id)
SELECT l.batch_id AS "batchId", l.created_at AS "createdAt" FROM listings AS l WHERE l.id = $1::text;

-- name: state_of_webhook_endpoint(id)
-- The state of a webhook endpoint, except failing_since, which deliveries change. Locks the row, because partners and
-- deliveries change the state too.
SELECT w.organization_id AS "organizationId", w.url, w.description, w.event_types AS "eventTypes", w.enabled,
       w.disabled_reason AS "disabledReason", w.disabled_at AS "disabledAt", w.secret_version AS "secretVersion",
       w.previous_secrets_until[1] AS "previousSecretUntil", w.created_at AS "createdAt"
  FROM webhook_endpoints AS w WHERE w.id = $1::text AND w.deleted_at IS NULL FOR NO KEY UPDATE;

-- name: state_of_roles(database)
-- The roles of the service and of voucherctl, and the rights of all roles except the owner: on this database, on the
-- schema of the tables (the current one), and on its tables, sequences, columns and functions.
WITH here AS (
  SELECT n.oid, n.nspname, n.nspacl, n.nspowner FROM pg_namespace AS n WHERE n.nspname = current_schema()
), granted AS (
  SELECT acl.grantee, d.datdba AS owner, acl.privilege_type || ' ON DATABASE ' || d.datname AS what
    FROM pg_database AS d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS acl WHERE d.datname = $1::text
   UNION ALL
  SELECT acl.grantee, h.nspowner, acl.privilege_type || ' ON SCHEMA ' || h.nspname FROM here AS h, aclexplode(h.nspacl) AS acl
   UNION ALL
  SELECT acl.grantee, c.relowner, acl.privilege_type || ' ON ' || c.relname
    FROM here AS h JOIN pg_class AS c ON c.relnamespace = h.oid, aclexplode(c.relacl) AS acl
   UNION ALL
  SELECT acl.grantee, c.relowner, acl.privilege_type || ' (' || a.attname || ') ON ' || c.relname
    FROM here AS h JOIN pg_class AS c ON c.relnamespace = h.oid JOIN pg_attribute AS a ON a.attrelid = c.oid,
         aclexplode(a.attacl) AS acl
   UNION ALL
  SELECT acl.grantee, p.proowner, acl.privilege_type || ' ON FUNCTION ' || p.proname
    FROM here AS h JOIN pg_proc AS p ON p.pronamespace = h.oid, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl
)
SELECT ARRAY(SELECT r.rolname || CASE WHEN r.rolcanlogin THEN ' LOGIN' ELSE ' NOLOGIN' END
               FROM here AS h, aclexplode(h.nspacl) AS acl JOIN pg_roles AS r ON r.oid = acl.grantee
              WHERE acl.privilege_type = 'USAGE' AND r.rolname ~ '_(api|log|admin)$' ORDER BY 1) AS roles,
       ARRAY(SELECT coalesce(r.rolname, 'PUBLIC') || ' ' || g.what FROM granted AS g LEFT JOIN pg_roles AS r ON r.oid = g.grantee
              WHERE g.grantee <> g.owner ORDER BY 1) AS rights;

-- name: state_of_user(form)
-- The time when a user was last erased. The user is found by the text that replaced the user's id.
SELECT u.erased_at AS "erasedAt" FROM erased_users AS u WHERE u.user_id = $1::text;

-- name: state_of_operator(id)
-- An operator with the expiry times of the tokens, oldest token first. NULL stands for the current token.
SELECT o.name, o.role, o.expires_at AS "expiresAt", o.revoked_at AS "revokedAt",
       ARRAY(SELECT t.expires_at FROM operator_tokens AS t WHERE t.operator_id = o.id ORDER BY t.created_at) AS "tokensExpireAt"
  FROM operators AS o WHERE o.id = $1::text;

-- name: state_of_log(origin)
SELECT t.size, encode(t.root, 'base64') AS root FROM log_tree AS t WHERE t.origin = $1::text;

-- name: state_of_deployment(id)
-- The only row of `deployment`. Does not compare its id, because voucherctl can change it between an entry's two reads.
SELECT d.id, d.system_identifier::text AS "systemIdentifier", d.database_oid::text AS "databaseOid"
  FROM deployment AS d WHERE d.singleton AND $1::text IS NOT NULL;

-- name: insert_audit_entry(os_user, host, by, command, arguments, entity_type, entity_id, before?, after?)
-- Inserts an audit entry. A trigger sets the time and the role.
INSERT INTO audit_entries (os_user, host, by, command, arguments, entity_type, entity_id, before, after)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::jsonb, $6::text, $7::text, $8::jsonb, $9::jsonb);

-- name: count_codes_read(batch_id, key_id, codes)
-- Adds to the counts in this hour's entry about a key that reads codes of a batch. Returns false without such an entry.
SELECT count_codes_read($1::text, $2::text, $3::int) AS counted;

-- name: insert_visit(os_user, host, by, command, arguments, entity_type, entity_id)
-- Inserts the entry of an operator's visit to a page, without before and after, which API processes may not write.
INSERT INTO audit_entries (os_user, host, by, command, arguments, entity_type, entity_id)
VALUES ($1::text, $2::text, $3::text, $4::text, $5::jsonb, $6::text, $7::text);

-- name: select_audit_entries(entity_id?, user?, limit)
-- Audit entries of one entity or of all, newest first. With a user, only entries of that user. Includes entries of
-- operators who signed in under this name with OPS_TOKEN, or with a JWT that has a subject.
SELECT a.id, a.at, a.database_role AS "databaseRole", a.os_user AS "osUser", a.host, a.by, a.command, a.arguments,
       a.entity_type AS "entityType", a.entity_id AS "entityId", a.before, a.after
  FROM audit_entries AS a
 WHERE ($1::text IS NULL OR a.entity_id = $1::text) AND ($2::text IS NULL OR a.os_user IN ($2::text, 'shared: ' || $2::text) OR starts_with(a.os_user, $2::text || ' (sub '))
 ORDER BY a.id DESC LIMIT $3::int;

-- name: select_changes(before, limit, entity_id?, user?)
-- Changes of one entity or of all, before a given entry, newest first, without states and without views of pages. With
-- a user, only changes by that user, as in select_audit_entries.
SELECT a.id, a.at, a.os_user AS "osUser", a.host, a.by, a.command, a.entity_type AS "entityType", a.entity_id AS "entityId"
  FROM audit_entries AS a
 WHERE a.id < $1::bigint AND a.command NOT LIKE 'page %' AND ($3::text IS NULL OR a.entity_id = $3::text)
   AND ($4::text IS NULL OR a.os_user IN ($4::text, 'shared: ' || $4::text) OR starts_with(a.os_user, $4::text || ' (sub '))
 ORDER BY a.id DESC LIMIT $2::int;

-- name: find_newest_pause(queue)
-- The newest entry that paused or resumed a queue, with its reason.
SELECT a.at, a.os_user AS "osUser", a.command, a.arguments->>'reason' AS reason
  FROM audit_entries AS a
 WHERE a.entity_id = $1::text AND a.entity_type = 'Queue' AND a.command IN ('queue pause', 'queue resume')
 ORDER BY a.id DESC LIMIT 1;
