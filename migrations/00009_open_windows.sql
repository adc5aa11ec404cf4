-- Open windows: who may take supply, from which batches and when, and who took what.

-- People of an organization. Owners are never locked out of their own supply.
CREATE TABLE members (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  -- The subject of the user's token.
  user_id text COLLATE "C" NOT NULL CHECK (length(user_id) BETWEEN 1 AND 255),
  role text NOT NULL CHECK (role IN ('owner', 'employee')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (organization_id, user_id)
);

ALTER TABLE products ADD CONSTRAINT products_with_brand UNIQUE (id, brand_id);

CREATE TABLE referrer_contracts (
  id text COLLATE "C" PRIMARY KEY,
  brand_id text COLLATE "C" NOT NULL REFERENCES brands,
  user_id text COLLATE "C" NOT NULL CHECK (length(user_id) BETWEEN 1 AND 255),
  status text NOT NULL DEFAULT 'Offered' CHECK (status IN ('Offered', 'Active', 'Ended', 'Declined')),
  -- From this moment on it opens nothing, whether or not its end has been recorded.
  ends_at timestamptz,
  offered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT referrer_contracts_with_brand UNIQUE (id, brand_id)
);

-- One contract at a time between a brand and a user.
CREATE UNIQUE INDEX referrer_contracts_one_open ON referrer_contracts (user_id, brand_id) WHERE status IN ('Offered', 'Active');

-- The way to the contracts whose end is to be recorded.
CREATE INDEX referrer_contracts_by_end ON referrer_contracts (ends_at) WHERE status = 'Active';

CREATE FUNCTION allow_legal_contract_moves() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.id, OLD.brand_id, OLD.user_id) IS DISTINCT FROM (NEW.id, NEW.brand_id, NEW.user_id)
     OR (OLD.status, NEW.status) NOT IN (('Offered', 'Active'), ('Offered', 'Declined'), ('Active', 'Ended'))
  THEN
    RAISE EXCEPTION 'a contract goes from Offered to Active or Declined and from Active to Ended, not from % to %', OLD.status, NEW.status
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER contract_moves_are_legal BEFORE UPDATE ON referrer_contracts
  FOR EACH ROW EXECUTE FUNCTION allow_legal_contract_moves();

CREATE TRIGGER contracts_begin_as_offers BEFORE INSERT ON referrer_contracts
  FOR EACH ROW WHEN (NEW.status <> 'Offered')
  EXECUTE FUNCTION refuse_change('a contract begins as an offer');
CREATE TRIGGER contracts_stay BEFORE DELETE OR TRUNCATE ON referrer_contracts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('contracts are kept for ever');

-- A referrer's own way to one product. The two-column keys see to it that contract and product are of one brand.
CREATE TABLE referral_links (
  code text COLLATE "C" PRIMARY KEY,
  contract_id text COLLATE "C" NOT NULL,
  product_id text COLLATE "C" NOT NULL,
  brand_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  FOREIGN KEY (contract_id, brand_id) REFERENCES referrer_contracts (id, brand_id),
  FOREIGN KEY (product_id, brand_id) REFERENCES products (id, brand_id)
);

-- Through which windows a batch's vouchers may be taken. No row: not at all.
CREATE TABLE batch_windows (
  batch_id text COLLATE "C" NOT NULL REFERENCES batches,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('claim', 'buy')),
  opens_at timestamptz,
  closes_at timestamptz,
  PRIMARY KEY (batch_id, kind),
  CONSTRAINT windows_have_a_length CHECK (closes_at > opens_at)
);

-- A batch that is offered on the marketplace.
CREATE TABLE listings (
  id text COLLATE "C" PRIMARY KEY,
  batch_id text COLLATE "C" NOT NULL UNIQUE REFERENCES batches,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Whether a voucher is still in its batch's windows. Only batches with windows have such vouchers, so that a partner's burn changes
-- nothing that an index knows; burning, voiding or taking one of these takes it out.
ALTER TABLE vouchers ADD COLUMN pickable boolean NOT NULL DEFAULT false;

-- The way to the next voucher to take: it holds what is left, so that a million taken ones are not passed over.
CREATE INDEX vouchers_pickable ON vouchers (batch_id, serial) WHERE pickable;

CREATE TRIGGER taken_voucher_stays_taken BEFORE UPDATE ON vouchers
  FOR EACH ROW WHEN (NEW.pickable AND NOT OLD.pickable)
  EXECUTE FUNCTION refuse_change('a voucher that left its window does not come back');

ALTER TABLE vouchers ADD CONSTRAINT only_active_vouchers_are_pickable CHECK (status = 'Active' OR NOT pickable);

-- Who took what. The row is written first and serialises the user's repeats; the voucher is filled in before the commit.
CREATE TABLE claims (
  claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  user_id text COLLATE "C" NOT NULL,
  product_id text COLLATE "C" NOT NULL REFERENCES products,
  voucher_id text COLLATE "C" UNIQUE REFERENCES vouchers,
  -- One claim for all batches of a product, and so for each of them.
  PRIMARY KEY (user_id, product_id)
);

CREATE TABLE purchases (
  bought_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  user_id text COLLATE "C" NOT NULL,
  -- The storefront's captured payment.
  payment_ref text COLLATE "C" NOT NULL,
  voucher_id text COLLATE "C" UNIQUE REFERENCES vouchers,
  PRIMARY KEY (user_id, payment_ref)
);

CREATE FUNCTION demand_voucher() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  missing boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT 1 FROM %I WHERE ctid = $1 AND voucher_id IS NULL)', TG_TABLE_NAME) INTO missing USING NEW.ctid;
  IF missing THEN
    RAISE EXCEPTION 'a row of % was committed without its voucher', TG_TABLE_NAME USING ERRCODE = 'not_null_violation';
  END IF;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER claims_name_their_voucher AFTER INSERT OR UPDATE ON claims DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION demand_voucher();
CREATE CONSTRAINT TRIGGER purchases_name_their_voucher AFTER INSERT OR UPDATE ON purchases DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION demand_voucher();

CREATE TRIGGER claims_are_final BEFORE UPDATE ON claims
  FOR EACH ROW WHEN (OLD.voucher_id IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a claim stays what it is');
CREATE TRIGGER purchases_are_final BEFORE UPDATE ON purchases
  FOR EACH ROW WHEN (OLD.voucher_id IS NOT NULL)
  EXECUTE FUNCTION refuse_change('a purchase stays what it is');
CREATE TRIGGER claims_stay BEFORE DELETE OR TRUNCATE ON claims
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('claims are kept for ever');
CREATE TRIGGER purchases_stay BEFORE DELETE OR TRUNCATE ON purchases
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('purchases are kept for ever');
