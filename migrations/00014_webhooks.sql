-- Addresses of partners, and what is sent to them. Transactions write the outbox; the fan-out turns it into one delivery per endpoint.

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
  -- Its secrets are derived from this version and earlier ones, never stored.
  secret_version integer NOT NULL DEFAULT 1 CHECK (secret_version > 0),
  -- Until when deliveries are also signed with the secrets of earlier versions, the latest first.
  previous_secrets_until timestamptz[] NOT NULL DEFAULT '{}' CHECK (cardinality(previous_secrets_until) <= 10),
  failing_since timestamptz, -- The first failure since the last success.
  -- Failed attempts since the last delivery that succeeded, counted up to three.
  failures smallint NOT NULL DEFAULT 0 CHECK (failures BETWEEN 0 AND 3),
  created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
  deleted_at timestamptz, -- No caller sees it after this time. The sweeper deletes its deliveries in portions, then the row.
  CONSTRAINT webhook_endpoints_enabled CHECK (enabled = (disabled_reason IS NULL) AND enabled = (disabled_at IS NULL)),
  CONSTRAINT webhook_endpoints_deleted CHECK ((deleted_at IS NULL) = (place IS NOT NULL) AND NOT (enabled AND deleted_at IS NOT NULL)),
  CONSTRAINT webhook_endpoints_place UNIQUE (organization_id, place)
);

-- Finds the endpoints that get an organization's events.
CREATE INDEX webhook_endpoints_now ON webhook_endpoints (organization_id) WHERE enabled;

-- Finds the endpoints whose rows are to be deleted. Almost always empty.
CREATE INDEX webhook_endpoints_gone ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;

-- Finds the endpoints whose Pending deliveries end.
CREATE INDEX webhook_endpoints_disabled ON webhook_endpoints (id) WHERE NOT enabled;

-- The versions of an endpoint's secret that sign now, the latest first.
CREATE FUNCTION signing_versions(e webhook_endpoints) RETURNS integer[] LANGUAGE sql VOLATILE AS $$
  SELECT e.secret_version || ARRAY(SELECT e.secret_version - p.n::int FROM unnest(e.previous_secrets_until) WITH ORDINALITY AS p (until, n)
                                    WHERE p.until > clock_timestamp() ORDER BY p.n)
$$;

-- Events of one organization that a transaction has made. The id is drawn under the locks of the vouchers. So of two events of one voucher, the later
-- one has the greater id, and the earlier one is visible whenever the later one is.
CREATE TABLE webhook_outbox (
  id bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
  created_at timestamptz NOT NULL DEFAULT date_trunc('milliseconds', clock_timestamp()),
  organization_id text COLLATE "C" NOT NULL,
  voucher_ids text[] NOT NULL CHECK (cardinality(voucher_ids) BETWEEN 1 AND 4096),
  sequences integer[], -- Of sealed events.
  tickets text[], -- Of reservations that have expired, which are no sealed events.
  CONSTRAINT webhook_outbox_one_kind CHECK (num_nonnulls(sequences, tickets) = 1),
  CONSTRAINT webhook_outbox_lengths CHECK (cardinality(voucher_ids) = coalesce(cardinality(sequences), cardinality(tickets)))
);

-- No foreign key: the fan-out holds the endpoint's row, and the sweeper deletes an endpoint after its deliveries.
CREATE TABLE webhook_deliveries (
  position bigint NOT NULL, -- The outbox row × 4096 + the place in it: the order of a voucher's events.
  created_at timestamptz NOT NULL, -- When the event was written to the outbox.
  -- When the next attempt is due. NULL: finished, or waits for the end of an earlier delivery of the same voucher.
  next_attempt_at timestamptz,
  finished_at timestamptz,
  replayed_at timestamptz, -- When a partner or an operator last asked to send a finished delivery again.
  sequence integer, -- NULL: a reservation has expired.
  attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  last_status integer,
  endpoint_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL, -- The webhook-id of every attempt.
  voucher_id text COLLATE "C" NOT NULL,
  ticket text COLLATE "C", -- The reservation that has expired.
  event_type text NOT NULL,
  state text COLLATE "C" NOT NULL DEFAULT 'Pending' CHECK (state IN ('Pending', 'Delivered', 'Failed')),
  last_failure text CHECK (last_failure ~ '^[a-z_]{1,32}$'), -- A fixed word, never text from the partner's server.
  PRIMARY KEY (endpoint_id, event_id),
  CONSTRAINT webhook_deliveries_finished CHECK ((state = 'Pending') = (finished_at IS NULL)),
  CONSTRAINT webhook_deliveries_next CHECK (state = 'Pending' OR next_attempt_at IS NULL),
  CONSTRAINT webhook_deliveries_one_kind CHECK ((sequence IS NULL) = (ticket IS NOT NULL))
);

-- Finds the deliveries of an endpoint that are due, however many wait.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- Finds the next delivery of a voucher.
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (endpoint_id, voucher_id, position) WHERE finished_at IS NULL;

-- Lists an endpoint's deliveries by state and time.
CREATE INDEX webhook_deliveries_by_time ON webhook_deliveries (endpoint_id, state, created_at, event_id);
