-- Addresses of partners to which events are sent, and the scope of keys that manage them.

ALTER TABLE api_keys DROP CONSTRAINT api_keys_scopes_check;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_scopes_check
  CHECK (scopes <@ ARRAY['voucher.read', 'voucher.redeem', 'voucher.webhook'] AND cardinality(scopes) > 0);

CREATE TABLE webhook_endpoints (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- Twenty places per organization, so it never has more endpoints. A deleted endpoint has none.
  place smallint CHECK (place BETWEEN 1 AND 20),
  url text NOT NULL CHECK (url ~ '^https?://' AND length(url) <= 2048),
  description text NOT NULL DEFAULT '' CHECK (length(description) <= 200),
  -- Empty: all types.
  event_types text[] NOT NULL DEFAULT '{}' CHECK (event_types <@ ARRAY[
    'voucher.instance.redeemed', 'voucher.instance.voided', 'voucher.instance.expired', 'voucher.instance.claimed',
    'voucher.instance.bought', 'reservation.expired']),
  enabled boolean NOT NULL DEFAULT true,
  -- `gone`: it answered 410. `failing`: nothing but failures for five days. Only an operator enables what an operator disabled.
  disabled_reason text CHECK (disabled_reason IN ('partner', 'operator', 'gone', 'failing')),
  disabled_at timestamptz,
  -- Its secrets are derived from this version and the one before, never stored.
  secret_version integer NOT NULL DEFAULT 1 CHECK (secret_version > 0),
  -- Until then, deliveries are also signed with the previous version's secret.
  previous_secret_until timestamptz,
  -- The first failure since the last success.
  failing_since timestamptz,
  created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
  -- No caller sees it after this time. The sweeper deletes its deliveries in portions, then the row.
  deleted_at timestamptz,
  CONSTRAINT webhook_endpoints_enabled CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL)),
  CONSTRAINT webhook_endpoints_deleted CHECK ((deleted_at IS NULL) = (place IS NOT NULL) AND NOT (enabled AND deleted_at IS NOT NULL)),
  CONSTRAINT webhook_endpoints_place UNIQUE (organization_id, place)
);

-- Finds the endpoints that get an organization's events.
CREATE INDEX webhook_endpoints_now ON webhook_endpoints (organization_id) WHERE enabled;

-- Finds the endpoints whose rows are to be deleted. Almost always empty.
CREATE INDEX webhook_endpoints_gone ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;
