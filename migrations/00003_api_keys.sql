-- Partner keys. A key is an identity that outlives its secrets: rotation adds a secret and gives the old one an end.

CREATE TABLE api_keys (
  id text COLLATE "C" PRIMARY KEY,
  -- NULL: bound to no organization; every call with it is refused with 403.
  organization_id text COLLATE "C" REFERENCES organizations,
  label text,
  scopes text[] NOT NULL CHECK (scopes <@ ARRAY['voucher.read', 'voucher.redeem'] AND cardinality(scopes) > 0),
  -- Empty: any address.
  allow_ips cidr[] NOT NULL DEFAULT '{}',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz
);

CREATE INDEX api_keys_by_organization ON api_keys (organization_id);

CREATE TABLE api_key_secrets (
  -- SHA-256 of the key as the partner sends it; the key itself is stored nowhere.
  secret_hash bytea PRIMARY KEY CHECK (octet_length(secret_hash) = 32),
  key_id text COLLATE "C" NOT NULL REFERENCES api_keys,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- NULL: the current secret. A rotated one works until this moment.
  expires_at timestamptz
);

-- One current secret per key.
CREATE UNIQUE INDEX api_key_secrets_current ON api_key_secrets (key_id) WHERE expires_at IS NULL;
