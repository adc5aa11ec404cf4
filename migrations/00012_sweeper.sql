-- What the sweeper remembers between its passes, and counts for the overview of operators.

-- Where each resumable sweeper task stopped. If a row is lost, the task starts again from the beginning.
CREATE TABLE sweep_positions (
  moved_at timestamptz NOT NULL,
  task text COLLATE "C" PRIMARY KEY,
  position text COLLATE "C" NOT NULL
);

-- One row per voucher whose chain was found broken: when the latest break was found and, if the chain has verified since, when.
CREATE TABLE broken_chains (
  found_at timestamptz NOT NULL,
  whole_at timestamptz, -- NULL: the chain is still broken.
  voucher_id text COLLATE "C" PRIMARY KEY REFERENCES vouchers
);

-- Finds the chains that are broken now. Almost always empty.
CREATE INDEX broken_chains_now ON broken_chains (voucher_id) WHERE whole_at IS NULL;

-- Redemptions and claims of an organization in a minute or an hour. The sweeper adds each one once.
CREATE TABLE activity_counts (
  at timestamptz NOT NULL,
  redemptions integer NOT NULL CHECK (redemptions >= 0),
  claims integer NOT NULL CHECK (claims >= 0),
  span text COLLATE "C" NOT NULL CHECK (span IN ('minute', 'hour')),
  organization_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (span, at, organization_id)
);

-- Claims and purchases of a batch's vouchers in an hour.
CREATE TABLE acquired_counts (
  at timestamptz NOT NULL,
  acquired integer NOT NULL CHECK (acquired >= 0),
  batch_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (batch_id, at)
);

-- The time up to which everything is counted.
CREATE TABLE activity_counted (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  counted_until timestamptz NOT NULL,
  -- The value of redemptions_closed when it was counted. If an operator has trusted the clock since, the last hours are counted again.
  clock_trusted_at timestamptz
);
INSERT INTO activity_counted (counted_until) VALUES ('epoch');
CREATE TRIGGER activity_counted_permanent BEFORE DELETE OR TRUNCATE ON activity_counted
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');

CREATE INDEX claims_by_time ON claims (claimed_at);
CREATE INDEX purchases_by_time ON purchases (bought_at);

-- Claims and purchases take the advisory lock of redemptions before they read their time. So find_complete_until returns a time before which they
-- are complete too: a transaction that had no lock when it read pg_locks takes its time later. Nothing is refused.
CREATE FUNCTION announce_acquisition_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared((21092::bigint << 48) + floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
  RETURN NULL;
END
$$;
CREATE TRIGGER claims_announce_time BEFORE INSERT ON claims FOR EACH STATEMENT EXECUTE FUNCTION announce_acquisition_time();
CREATE TRIGGER purchases_announce_time BEFORE INSERT ON purchases FOR EACH STATEMENT EXECUTE FUNCTION announce_acquisition_time();
