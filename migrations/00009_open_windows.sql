-- Open windows: who may acquire vouchers, from which batches and when, and who acquired which voucher.

-- Members of an organization. Owners can always acquire their own supply.
CREATE TABLE members (
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  user_id text COLLATE "C" NOT NULL CHECK (length(user_id) BETWEEN 1 AND 255), -- The subject of the user's token.
  role text NOT NULL CHECK (role IN ('owner', 'employee')),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (organization_id, user_id)
);

CREATE TABLE referrer_contracts (
  id text COLLATE "C" PRIMARY KEY,
  brand_id text COLLATE "C" NOT NULL REFERENCES brands,
  user_id text COLLATE "C" NOT NULL CHECK (length(user_id) BETWEEN 1 AND 255),
  status text NOT NULL DEFAULT 'Offered' CHECK (status IN ('Offered', 'Active', 'Ended', 'Declined')),
  ends_at timestamptz, -- From this moment on the contract gives no access, whether or not the sweeper has recorded its end.
  offered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT referrer_contracts_with_brand UNIQUE (id, brand_id)
);

-- One open contract at a time between a brand and a user.
CREATE UNIQUE INDEX referrer_contracts_one_open ON referrer_contracts (user_id, brand_id) WHERE status IN ('Offered', 'Active');

-- Finds contracts whose end must be recorded. The condition on ends_at keeps lookups of a user's contract away from this index.
CREATE INDEX referrer_contracts_by_end ON referrer_contracts (ends_at) WHERE status = 'Active' AND ends_at IS NOT NULL;

-- Legal moves of a contract. In a sandbox, the end of an open one may also move back.
CREATE FUNCTION check_contract_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (OLD.id, OLD.brand_id, OLD.user_id) = (NEW.id, NEW.brand_id, NEW.user_id)
     AND ((OLD.status, NEW.status) IN (('Offered', 'Active'), ('Offered', 'Declined'), ('Active', 'Ended'))
          OR OLD.status = NEW.status AND OLD.status IN ('Offered', 'Active') AND NEW.ends_at < OLD.ends_at
             AND (OLD.offered_at, OLD.changed_at) = (NEW.offered_at, NEW.changed_at)
             AND EXISTS (SELECT 1 FROM brands AS br JOIN organizations AS o ON o.id = br.organization_id WHERE br.id = NEW.brand_id AND o.sandbox))
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'a contract goes from Offered to Active or Declined and from Active to Ended, not from % to %', OLD.status, NEW.status
    USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER referrer_contracts_transitions BEFORE UPDATE ON referrer_contracts FOR EACH ROW EXECUTE FUNCTION check_contract_update();
CREATE TRIGGER referrer_contracts_start_offered BEFORE INSERT ON referrer_contracts
  FOR EACH ROW WHEN (NEW.status <> 'Offered') EXECUTE FUNCTION reject_change('a contract starts as Offered');
CREATE TRIGGER referrer_contracts_permanent BEFORE DELETE OR TRUNCATE ON referrer_contracts
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('contracts are permanent');

-- A referrer's own link to one product. The two-column keys make sure that contract and product belong to the same brand.
CREATE TABLE referral_links (
  code text COLLATE "C" PRIMARY KEY,
  contract_id text COLLATE "C" NOT NULL,
  product_id text COLLATE "C" NOT NULL,
  brand_id text COLLATE "C" NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  FOREIGN KEY (contract_id, brand_id) REFERENCES referrer_contracts (id, brand_id),
  FOREIGN KEY (product_id, brand_id) REFERENCES products (id, brand_id)
);

-- The windows through which a batch's vouchers can be acquired. A batch without a row has none.
CREATE TABLE batch_windows (
  batch_id text COLLATE "C" NOT NULL REFERENCES batches,
  kind text COLLATE "C" NOT NULL CHECK (kind IN ('claim', 'buy')),
  opens_at timestamptz,
  closes_at timestamptz,
  PRIMARY KEY (batch_id, kind),
  CONSTRAINT batch_windows_close_after_opening CHECK (closes_at > opens_at)
);

-- A batch that is offered on the marketplace.
CREATE TABLE listings (
  id text COLLATE "C" PRIMARY KEY,
  batch_id text COLLATE "C" NOT NULL UNIQUE REFERENCES batches,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE claims (
  claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  user_id text COLLATE "C" NOT NULL,
  product_id text COLLATE "C" NOT NULL REFERENCES products,
  voucher_id text COLLATE "C" NOT NULL UNIQUE REFERENCES vouchers,
  -- One claim for all batches of a product, and so for each of them.
  PRIMARY KEY (user_id, product_id)
);

-- Unique per organization: storefronts of two organizations may use the same payment reference for the same user.
CREATE TABLE purchases (
  bought_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  organization_id text COLLATE "C" NOT NULL, -- The organization of the voucher. No foreign key, as in vouchers.
  user_id text COLLATE "C" NOT NULL,
  payment_ref text COLLATE "C" NOT NULL, -- The storefront's captured payment.
  voucher_id text COLLATE "C" NOT NULL UNIQUE REFERENCES vouchers,
  PRIMARY KEY (organization_id, user_id, payment_ref)
);
CREATE TRIGGER claims_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON claims
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('claims are permanent');
CREATE TRIGGER purchases_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON purchases
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('purchases are permanent');
