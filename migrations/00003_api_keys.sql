-- API keys of partners. A key keeps its identity when its secret is rotated: rotation adds a secret and ends the previous one.

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  -- NULL: not bound to an organization. Every request with this key gets a 403 response.
  organization_id text COLLATE "C" REFERENCES organizations,
  label text,
  scopes text[] NOT NULL CHECK (scopes <@ ARRAY['voucher.read', 'voucher.redeem', 'voucher.webhook'] AND cardinality(scopes) > 0),
  allow_ips cidr[] NOT NULL DEFAULT '{}', -- Empty: any address.
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz
);

CREATE INDEX api_keys_by_organization ON api_keys (organization_id);

CREATE TABLE api_key_secrets (
  -- SHA-256 of the secret, which the partner sends as X-Api-Key. The secret itself is never stored.
  secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
  key_id text COLLATE "C" NOT NULL REFERENCES api_keys,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- NULL: the current secret. A rotated secret works until this moment.
  expires_at timestamptz
);

-- One current secret per key.
CREATE UNIQUE INDEX api_key_secrets_current ON api_key_secrets (key_id) WHERE expires_at IS NULL;

-- Finds all secrets of a key, for rotation and listing.
CREATE INDEX api_key_secrets_by_key ON api_key_secrets (key_id);

-- When each key was last used, updated at most once a minute. A separate table, so that the API role needs no UPDATE privilege on api_keys.
CREATE TABLE api_key_uses (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES api_keys,
  last_used_at timestamptz NOT NULL
);
