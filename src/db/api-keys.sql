-- name: find_keys_by_secret
-- The keys that secrets belong to, many at a time. Revoked and expired keys and secrets past their end give no row.
-- usable_ms: for how long the answer stays true if nobody changes anything; null: without end.
-- use_is_due: its use has not been noted within the last minute.
-- $1 secret_hash bytea[]
SELECT encode(s.secret_hash, 'hex') AS secret_hash, k.id, k.organization_id, k.scopes, k.allow_ips::text[] AS allow_ips,
       (extract(epoch FROM least(k.expires_at, s.expires_at) - clock_timestamp()) * 1000)::float8 AS usable_ms,
       coalesce(u.last_used_at < clock_timestamp() - interval '1 minute', true) AS use_is_due
  FROM api_key_secrets AS s
  JOIN api_keys AS k ON k.id = ANY (ARRAY[s.key_id])
  LEFT JOIN api_key_uses AS u ON u.key_id = ANY (ARRAY[k.id])
 WHERE s.secret_hash = ANY ($1::bytea[]) AND k.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
   AND (s.expires_at IS NULL OR s.expires_at > clock_timestamp());

-- name: note_key_uses
-- Notes that keys are in use: each at most once a minute, however many ask. In the keys' order, so that two who note the same ones wait
-- for each other in one direction only.
-- $1 key_id text[]
INSERT INTO api_key_uses AS u (key_id, last_used_at)
SELECT k.id, clock_timestamp() FROM api_keys AS k WHERE k.id = ANY ($1::text[]) ORDER BY k.id
ON CONFLICT (key_id) DO UPDATE SET last_used_at = EXCLUDED.last_used_at
 WHERE u.last_used_at < EXCLUDED.last_used_at - interval '1 minute';

-- name: insert_key
-- $1 id text, $2 organization_id text or null, $3 label text or null, $4 scopes text[], $5 allow_ips text[], $6 expires_at timestamptz or null
INSERT INTO api_keys (id, organization_id, label, scopes, allow_ips, expires_at)
VALUES ($1::text, $2::text, $3::text, $4::text[], $5::text[]::cidr[], $6::timestamptz);

-- name: insert_secret
-- Makes this the key's current secret; the one before must have got its end.
-- $1 key_id text, $2 secret_hash bytea
INSERT INTO api_key_secrets (key_id, secret_hash) VALUES ($1::text, $2::bytea);

-- name: retire_secrets
-- Gives the current secret of a key that still works its end, and an earlier one to those from before that would live longer.
-- $1 key_id text, $2 grace in milliseconds float8
UPDATE api_key_secrets AS s SET expires_at = grace.ends_at
  FROM api_keys AS k, (SELECT clock_timestamp() + make_interval(secs => $2::float8 / 1000) AS ends_at OFFSET 0) AS grace
 WHERE s.key_id = $1::text AND (s.expires_at IS NULL OR s.expires_at > grace.ends_at) AND k.id = s.key_id AND k.revoked_at IS NULL
   AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
RETURNING s.expires_at;

-- name: revoke_key
-- A key revoked twice keeps the first moment.
-- $1 id text
UPDATE api_keys AS k SET revoked_at = coalesce(k.revoked_at, clock_timestamp()) WHERE k.id = $1::text;

-- name: select_keys
-- The keys of an organization, newest first, without anything that could be used.
-- $1 organization_id text
SELECT k.id, k.label, k.scopes, k.allow_ips::text[] AS allow_ips, k.created_at, k.expires_at, k.revoked_at, u.last_used_at,
       (SELECT max(s.expires_at) FROM api_key_secrets AS s WHERE s.key_id = k.id AND s.expires_at > clock_timestamp()) AS old_secrets_until
  FROM api_keys AS k LEFT JOIN api_key_uses AS u ON u.key_id = k.id WHERE k.organization_id = $1::text ORDER BY k.id DESC;
