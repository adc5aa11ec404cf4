-- Batches and their vouchers, designed for ten million vouchers.

-- The terms are copied from the product when a batch is issued, so that a later change of the product does not change issued vouchers.
CREATE TABLE batches (
  id text COLLATE "C" PRIMARY KEY,
  product_id text COLLATE "C" NOT NULL REFERENCES products,
  audience text NOT NULL DEFAULT 'OpenToAll' CHECK (audience IN ('OpenToAll', 'ReferrerOnly')),
  voucher_count integer NOT NULL CHECK (voucher_count > 0),
  valid_until timestamptz NOT NULL,
  retail_price_usd numeric(12, 2) NOT NULL CHECK (retail_price_usd >= 0),
  price_usd numeric(12, 2) NOT NULL CHECK (price_usd >= 0),
  benefit_months integer NOT NULL CHECK (benefit_months >= 0),
  usage_unit_label text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- In an expired batch, the vouchers up to this serial have their expiry event. The sweeper walks a batch once, in serial order.
  expiry_recorded_to integer NOT NULL DEFAULT 0,
  CONSTRAINT batches_expiry_recorded_to_range CHECK (expiry_recorded_to BETWEEN 0 AND voucher_count)
);

CREATE INDEX batches_by_product ON batches (product_id);

-- Finds expired batches that still need expiry events. Finished batches are not in it.
CREATE INDEX batches_by_end ON batches (valid_until) WHERE expiry_recorded_to < voucher_count;
CREATE TRIGGER batches_audience_immutable BEFORE UPDATE ON batches
  FOR EACH ROW WHEN (OLD.audience IS DISTINCT FROM NEW.audience)
  EXECUTE FUNCTION reject_change('the audience of a batch is set when the batch is issued');

-- Column order: the 8-byte column, then the 4-byte ones, then texts, which need no alignment. This leaves no padding. Measured: 290 bytes a row with
-- free space, so 3 GB for ten million vouchers, and 2.4 GB for the three indexes. fillfactor 90: a voucher is updated two or three times in its life
-- (acquired, then redeemed, voided or expired). The free space fits three new row versions a page, so these updates stay heap-only and a redemption
-- writes to no index of this table. For the same reason no index, and no index predicate, names a column that a redemption changes. valid_until is on
-- the batch only: one value, and 80 MB less.
CREATE TABLE vouchers (
  redeemed_at timestamptz,
  serial integer NOT NULL CHECK (serial > 0),
  -- Number of the newest event of this voucher's chain, Sealed or Pending. Allocated under this row's lock.
  last_sequence integer NOT NULL,
  sealed_sequence integer NOT NULL, -- Number and hash of the newest sealed event, so that appending reads no event.
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  batch_id text COLLATE "C" NOT NULL REFERENCES batches,
  status text COLLATE "C" NOT NULL DEFAULT 'Active' CHECK (status IN ('Active', 'Redeemed', 'Voided')),
  code text COLLATE "C" NOT NULL, -- The code as printed.
  -- The code as compared: upper case, without spaces and hyphens, O read as 0, I and L as 1.
  code_key text COLLATE "C" NOT NULL,
  sealed_hash bytea CHECK (octet_length(sealed_hash) = 32),
  -- Whether the voucher can still be acquired through its batch's windows. False in every batch without windows, so that a partner's redemption there
  -- changes no indexed column.
  pickable boolean NOT NULL DEFAULT false,
  CONSTRAINT vouchers_redeemed_at_if_redeemed CHECK ((status = 'Redeemed') = (redeemed_at IS NOT NULL)),
  CONSTRAINT vouchers_chain_head_consistent CHECK (sealed_sequence BETWEEN 0 AND last_sequence AND (sealed_sequence = 0) = (sealed_hash IS NULL)),
  CONSTRAINT vouchers_pickable_only_if_active CHECK (status = 'Active' OR NOT pickable),
  -- No foreign key to organizations: the batch's product leads to the organization, and every write would lock the same organization row.
  CONSTRAINT vouchers_code_key UNIQUE (organization_id, code_key),
  CONSTRAINT vouchers_serial UNIQUE (batch_id, serial)
) WITH (fillfactor = 90);

-- Finds the next voucher to acquire. Acquired vouchers leave it, so that a search does not pass over a million of them.
CREATE INDEX vouchers_pickable ON vouchers (batch_id, serial) WHERE pickable;

-- Redeemed and Voided are final. The WHEN clause calls no function, so an ordinary redemption pays nothing.
CREATE TRIGGER vouchers_status_final BEFORE UPDATE ON vouchers
  FOR EACH ROW WHEN (OLD.status <> 'Active' AND OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION reject_change('a redeemed or voided voucher keeps its status');
CREATE TRIGGER vouchers_pickable_final BEFORE UPDATE ON vouchers
  FOR EACH ROW WHEN (NEW.pickable AND NOT OLD.pickable) EXECUTE FUNCTION reject_change('a voucher that left its window does not return to it');
