-- Batches and their vouchers, laid out for ten million vouchers.

-- What a customer is promised when a voucher is issued is copied here, so that a later change of the product
-- changes no voucher that is already out.
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
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE INDEX batches_by_product ON batches (product_id);

-- A change of intent is a new batch.
CREATE TRIGGER batch_audience_is_fixed BEFORE UPDATE ON batches
  FOR EACH ROW WHEN (OLD.audience IS DISTINCT FROM NEW.audience)
  EXECUTE FUNCTION refuse_change('the audience of a batch is set when it is issued');

-- Column order: the one 8-byte column, then the 4-byte ones, then the texts, which need no alignment: no padding.
-- Measured: 290 bytes a row with its free room, so 3 GB for ten million, and 2.4 GB for the three indexes.
-- fillfactor 90: a voucher is updated two or three times in its life (taken, then burnt, voided or expired). The room
-- for three new versions a page keeps these updates heap-only, so that a burn writes to no index of this table; pruning
-- gives the room back before the next neighbour needs it. No index, and no index predicate, names a column that a burn changes.
-- valid_until stands on the batch alone: one value, and 80 MB less.
CREATE TABLE vouchers (
  redeemed_at timestamptz,
  serial integer NOT NULL CHECK (serial > 0),
  -- Number of the newest event of this voucher's chain, sealed or pending. Allocated under this row's lock.
  last_sequence integer NOT NULL,
  -- The newest sealed event and its hash, so that an append reads no event.
  sealed_sequence integer NOT NULL,
  id text COLLATE "C" NOT NULL PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL,
  batch_id text COLLATE "C" NOT NULL REFERENCES batches,
  status text COLLATE "C" NOT NULL DEFAULT 'Active' CHECK (status IN ('Active', 'Redeemed', 'Voided')),
  -- As printed.
  code text COLLATE "C" NOT NULL,
  -- As compared: upper case, without spaces and hyphens, O read as 0, I and L as 1.
  code_key text COLLATE "C" NOT NULL,
  sealed_hash bytea CHECK (octet_length(sealed_hash) = 32),
  CONSTRAINT redeemed_vouchers_say_when CHECK ((status = 'Redeemed') = (redeemed_at IS NOT NULL)),
  CONSTRAINT chain_head_is_consistent CHECK (
    sealed_sequence BETWEEN 0 AND last_sequence AND (sealed_sequence = 0) = (sealed_hash IS NULL)
  ),
  -- No foreign key to organizations: the batch's product leads there, and a row lock on one organization in every
  -- write would be the hottest row of the database.
  CONSTRAINT vouchers_code_key UNIQUE (organization_id, code_key),
  CONSTRAINT vouchers_serial UNIQUE (batch_id, serial)
) WITH (fillfactor = 90);

-- Redeemed and Voided are final. The WHEN is evaluated without a function call, so an ordinary burn pays nothing.
CREATE TRIGGER voucher_status_is_final BEFORE UPDATE ON vouchers
  FOR EACH ROW WHEN (OLD.status <> 'Active' AND OLD.status IS DISTINCT FROM NEW.status)
  EXECUTE FUNCTION refuse_change('a redeemed or voided voucher stays what it is');
