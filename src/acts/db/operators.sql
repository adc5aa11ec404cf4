-- name: find_operators_by_token(token_hash, latest?)
-- Finds operators by the hashes of their tokens. Revoked or expired operators and expired tokens give no row.
SELECT encode(t.token_hash, 'hex') AS "tokenHash", o.id, o.name, o.role
  FROM operator_tokens AS t JOIN operators AS o ON o.id = ANY (ARRAY[t.operator_id])
 WHERE t.token_hash = ANY ($1::bytea[]) AND o.revoked_at IS NULL
   AND (o.expires_at IS NULL OR o.expires_at > least(clock_timestamp(), $2::timestamptz))
   AND (t.expires_at IS NULL OR t.expires_at > least(clock_timestamp(), $2::timestamptz));

-- name: find_any_operator
-- Returns one row if any operator can sign in.
SELECT FROM operators AS o WHERE o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > clock_timestamp()) LIMIT 1;

-- name: count_operators
-- How many operators of each role can sign in. A role without such operators has no row.
SELECT o.role, count(*)::int AS operators FROM operators AS o
 WHERE o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > clock_timestamp()) GROUP BY o.role;

-- name: insert_operator(id, name, role, expires_at?)
INSERT INTO operators (id, name, role, expires_at) VALUES ($1::text, $2::text, $3::text, $4::timestamptz);

-- name: insert_operator_token(operator_id, token_hash)
-- Adds an operator's current token. The previous token must already have an expiry time.
INSERT INTO operator_tokens (operator_id, token_hash) VALUES ($1::text, $2::bytea);

-- name: retire_operator_tokens(operator_id, grace_ms)
-- Makes the tokens of an operator expire after a grace period. A token that expires sooner keeps its time. Returns no
-- row if the operator is revoked or expired.
UPDATE operator_tokens AS t SET expires_at = grace.ends_at
  FROM operators AS o, (SELECT statement_timestamp() + make_interval(secs => $2::float8 / 1000) AS ends_at) AS grace
 WHERE t.operator_id = $1::text AND (t.expires_at IS NULL OR t.expires_at > grace.ends_at) AND o.id = t.operator_id AND o.revoked_at IS NULL
   AND (o.expires_at IS NULL OR o.expires_at > statement_timestamp())
RETURNING t.expires_at AS "expiresAt";

-- name: revoke_operator(id)
-- Revokes an operator. An operator who is already revoked keeps the time of the first revocation.
UPDATE operators AS o SET revoked_at = coalesce(o.revoked_at, statement_timestamp()) WHERE o.id = $1::text;
