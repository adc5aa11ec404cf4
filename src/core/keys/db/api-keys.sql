-- name: find_keys_by_secret(secret_hash, latest?)
-- Finds keys by the hashes of their secrets. Returns no row for a revoked or expired key, or an expired secret.
-- usableMs: milliseconds until the key or the secret expires, whichever is first. Null if neither expires. useIsDue:
-- whether no use of the current secret, or of the replaced secrets, was recorded in the last minute. sandbox: whether
-- the key's organization is a sandbox. capped: whether the key has a daily limit.
SELECT encode(s.secret_hash, 'hex') AS "secretHash", k.id, k.organization_id AS "organizationId", k.scopes,
       k.allow_ips::text[] AS "allowIps",
       (extract(epoch FROM least(k.expires_at, s.expires_at) - clock.now) * 1000)::float8 AS "usableMs",
       coalesce(CASE WHEN s.expires_at IS NULL THEN u.last_used_at ELSE u.old_secrets_used_at END < clock_timestamp() - interval '1 minute',
                true) AS "useIsDue",
       coalesce(o.sandbox, false) AS sandbox, k.max_per_day IS NOT NULL OR k.max_amount_per_day_usd IS NOT NULL AS capped
  FROM api_key_secrets AS s
 CROSS JOIN (SELECT least(clock_timestamp(), $2::timestamptz) AS now) AS clock
  JOIN api_keys AS k ON k.id = ANY (ARRAY[s.key_id])
  LEFT JOIN organizations AS o ON o.id = ANY (ARRAY[k.organization_id])
  LEFT JOIN api_key_uses AS u ON u.key_id = ANY (ARRAY[k.id])
 WHERE s.secret_hash = ANY ($1::bytea[]) AND k.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > clock.now)
   AND (s.expires_at IS NULL OR s.expires_at > clock.now);

-- name: record_key_usage(secret_hash)
-- Records that secrets are in use, separately for a key's current secret and its previous secrets. Records each of the
-- two at most once a minute. Writes in the order of ids, so that concurrent calls cannot deadlock.
INSERT INTO api_key_uses AS u (key_id, last_used_at, old_secrets_used_at)
SELECT s.key_id, max(statement_timestamp()) FILTER (WHERE s.expires_at IS NULL),
       max(statement_timestamp()) FILTER (WHERE s.expires_at IS NOT NULL)
  FROM (SELECT n.key_id, n.expires_at FROM api_key_secrets AS n WHERE n.secret_hash = ANY ($1::bytea[]) OFFSET 0) AS s GROUP BY s.key_id ORDER BY s.key_id
ON CONFLICT (key_id) DO UPDATE SET last_used_at = coalesce(EXCLUDED.last_used_at, u.last_used_at),
                                   old_secrets_used_at = coalesce(EXCLUDED.old_secrets_used_at, u.old_secrets_used_at)
 WHERE EXCLUDED.last_used_at > coalesce(u.last_used_at, '-infinity') + interval '1 minute'
    OR EXCLUDED.old_secrets_used_at > coalesce(u.old_secrets_used_at, '-infinity') + interval '1 minute';

-- name: find_ended_key(key_id)
-- One row if a key is revoked or expired.
SELECT FROM api_keys AS k WHERE k.id = $1::text AND (k.revoked_at IS NOT NULL OR k.expires_at <= clock_timestamp());

-- name: find_any_key
-- One row if there is any key, even a revoked or expired key.
SELECT FROM api_keys AS k LIMIT 1;

-- name: insert_key(id, organization_id?, label?, scopes, allow_ips, expires_at?, max_per_day?, max_amount_per_day_usd?)
INSERT INTO api_keys (id, organization_id, label, scopes, allow_ips, expires_at, max_per_day, max_amount_per_day_usd)
VALUES ($1::text, $2::text, $3::text, $4::text[], $5::text[]::cidr[], $6::timestamptz, $7::integer, $8::numeric);

-- name: lock_key_caps(key_id)
-- Locks the caps (daily limits) of keys until the transaction ends, so that no other transaction redeems with these
-- keys. Later statements see all redemptions that were committed before. Keys must be distinct and in order.
SELECT pg_advisory_xact_lock(key_cap_lock(w.key_id)) FROM unnest($1::text[]) AS w (key_id);

-- name: select_key_caps(key_id)
-- How much locked keys may still redeem today (UTC), in redemptions and cents. Null: no limit. Keys without caps: no
-- row.
SELECT k.id AS "keyId", k.max_per_day - coalesce(d.redemptions, 0) AS redemptions,
       ((k.max_amount_per_day_usd - coalesce(d.amount_usd, 0)) * 100)::bigint AS cents
  FROM api_keys AS k
  LEFT JOIN key_days AS d ON d.key_id = k.id AND d.day = (statement_timestamp() AT TIME ZONE 'UTC')::date
 WHERE k.id = ANY ($1::text[]) AND (k.max_per_day IS NOT NULL OR k.max_amount_per_day_usd IS NOT NULL);

-- name: find_key_caps(id)
SELECT k.max_per_day AS "maxPerDay", k.max_amount_per_day_usd AS "maxAmountPerDayUsd" FROM api_keys AS k WHERE k.id = $1::text;

-- name: change_key_caps(id, max_per_day?, max_amount_per_day_usd?)
-- Replaces the caps of a locked key.
UPDATE api_keys AS k SET max_per_day = $2::integer, max_amount_per_day_usd = $3::numeric WHERE k.id = $1::text;

-- name: count_key_day(key_id)
-- Sets today's row (UTC) of a locked key to its redemptions and their dollars so far. Before its first cap, a key has
-- no such row. Writes nothing if the key has redeemed nothing today.
INSERT INTO key_days AS d (key_id, day, redemptions, amount_usd)
SELECT k.id, today.day, count(*), sum(b.price_usd)
  FROM (SELECT o.id, o.organization_id FROM api_keys AS o WHERE o.id = $1::text OFFSET 0) AS k
 CROSS JOIN (SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day OFFSET 0) AS today
 CROSS JOIN LATERAL (SELECT rd.voucher_id, rd.key_id FROM redemptions AS rd
                      WHERE (rd.organization_id || '') = k.organization_id
                        AND rd.redeemed_at >= today.day::timestamp AT TIME ZONE 'UTC' OFFSET 0) AS redeemed
  JOIN vouchers AS v ON v.id = ANY (ARRAY[redeemed.voucher_id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
 WHERE redeemed.key_id = k.id
 GROUP BY k.id, today.day
    ON CONFLICT (day, key_id) DO UPDATE SET redemptions = excluded.redemptions, amount_usd = excluded.amount_usd;

-- name: find_key_sandbox(key_id)
-- One row if the organization of a key is a sandbox.
SELECT FROM api_keys AS k JOIN organizations AS o ON o.id = ANY (ARRAY[k.organization_id]) WHERE k.id = $1::text AND o.sandbox;

-- name: select_key_names(id)
-- The labels of keys, and the names of their organizations.
SELECT k.id, k.label, o.name AS organization FROM api_keys AS k JOIN organizations AS o ON o.id = ANY (ARRAY[k.organization_id])
 WHERE k.id = ANY ($1::text[]);

-- name: insert_secret(key_id, secret_hash)
-- Adds a key's current secret. The previous secret must already have an expiry time.
INSERT INTO api_key_secrets (key_id, secret_hash) VALUES ($1::text, $2::bytea);

-- name: retire_secrets(key_id, grace_ms)
-- Makes the secrets of a key expire after a grace period at the latest. No row if the key is revoked or expired.
UPDATE api_key_secrets AS s SET expires_at = grace.ends_at
  FROM api_keys AS k, (SELECT statement_timestamp() + make_interval(secs => $2::float8 / 1000) AS ends_at) AS grace
 WHERE s.key_id = $1::text AND (s.expires_at IS NULL OR s.expires_at > grace.ends_at) AND k.id = s.key_id AND k.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > statement_timestamp())
RETURNING s.expires_at AS "expiresAt";

-- name: revoke_key(id)
-- Revokes a key. A key that is already revoked keeps the time of its first revocation.
UPDATE api_keys AS k SET revoked_at = coalesce(k.revoked_at, statement_timestamp()) WHERE k.id = $1::text;

-- name: select_keys(organization_id, before?, limit?)
-- The keys of an organization before an id, newest first, without their secrets. What a key has redeemed today is
-- counted only while it has a cap. oldSecretsUntil: when the last replaced secret expires, or null if all have expired.
-- A recorded use that is older than the current secret was a use of an earlier secret.
SELECT k.id, k.label, k.scopes, k.allow_ips::text[] AS "allowIps", k.created_at AS "createdAt", k.expires_at AS "expiresAt",
       k.revoked_at AS "revokedAt", greatest(u.last_used_at, u.old_secrets_used_at) AS "lastUsedAt",
       CASE WHEN u.last_used_at >= c.created_at THEN u.last_used_at END AS "currentSecretUsedAt",
       greatest(u.old_secrets_used_at, CASE WHEN u.last_used_at < c.created_at THEN u.last_used_at END) AS "oldSecretsUsedAt",
       k.max_per_day AS "maxPerDay", k.max_amount_per_day_usd AS "maxAmountPerDayUsd",
       coalesce(d.redemptions, 0) AS "redemptionsToday", coalesce(d.amount_usd, 0) AS "amountTodayUsd",
       CASE WHEN k.revoked_at IS NOT NULL THEN 'Revoked' WHEN k.expires_at <= clock_timestamp() THEN 'Expired' ELSE 'Active' END AS state,
       (SELECT max(s.expires_at) FROM api_key_secrets AS s WHERE s.key_id = k.id AND s.expires_at > clock_timestamp()) AS "oldSecretsUntil"
  FROM (SELECT n.* FROM api_keys AS n WHERE n.organization_id = $1::text OFFSET 0) AS k
  LEFT JOIN api_key_uses AS u ON u.key_id = ANY (ARRAY[k.id])
  LEFT JOIN key_days AS d ON d.key_id = ANY (ARRAY[k.id]) AND d.day = (statement_timestamp() AT TIME ZONE 'UTC')::date
  LEFT JOIN LATERAL (SELECT n.created_at FROM api_key_secrets AS n WHERE n.key_id = k.id AND n.expires_at IS NULL OFFSET 0) AS c ON true
 WHERE $2::text IS NULL OR k.id < $2::text ORDER BY k.id DESC LIMIT $3::int;

-- name: find_key_place(key_id, page_size)
-- A key's organization, and the value of `before` for the page of select_keys with this key. Null: the newest page.
SELECT k.organization_id AS "organizationId",
       (SELECT n.id FROM api_keys AS n WHERE n.organization_id = k.organization_id AND n.id > k.id ORDER BY n.id OFFSET $2::int - 1 LIMIT 1) AS before
  FROM api_keys AS k WHERE k.id = $1::text;
