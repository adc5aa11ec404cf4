-- What the sweeper remembers between its passes.

-- Where each resumable sweeper task stopped. If a row is lost, the task starts again from the beginning.
CREATE TABLE sweep_positions (
  moved_at timestamptz NOT NULL,
  task text COLLATE "C" PRIMARY KEY,
  position text COLLATE "C" NOT NULL
);

-- One row per voucher whose chain was found broken: when the latest break was found and, if the chain has verified since, when.
CREATE TABLE broken_chains (
  found_at timestamptz NOT NULL,
  -- NULL: the chain is still broken.
  whole_at timestamptz,
  voucher_id text COLLATE "C" PRIMARY KEY REFERENCES vouchers
);

-- Finds the chains that are broken now. Almost always empty.
CREATE INDEX broken_chains_now ON broken_chains (voucher_id) WHERE whole_at IS NULL;
