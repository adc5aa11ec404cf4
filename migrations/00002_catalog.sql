-- Organizations own brands, and brands have products. There are thousands of rows at most, so nothing is tuned. Ids are TypeIDs (prefix and UUIDv7 in
-- base32), stored as text so that rows, logs and responses show the same id. COLLATE "C" everywhere: ids then sort by creation time, and byte
-- comparison is the fastest.

CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Partners try their integration in a sandbox, on vouchers that can never be taken for real ones.
  sandbox boolean NOT NULL DEFAULT false
);
CREATE TRIGGER organizations_sandbox_immutable BEFORE UPDATE ON organizations
  FOR EACH ROW WHEN (OLD.sandbox IS DISTINCT FROM NEW.sandbox)
  EXECUTE FUNCTION reject_change('an organization is live or a sandbox from its creation on');

CREATE TABLE brands (
  id text COLLATE "C" PRIMARY KEY,
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE products (
  id text COLLATE "C" PRIMARY KEY,
  brand_id text COLLATE "C" NOT NULL REFERENCES brands,
  key text NOT NULL,
  name text NOT NULL,
  type text NOT NULL CHECK (type IN ('Subscription', 'Product', 'Service', 'Discount')),
  retail_price_usd numeric(12, 2) NOT NULL CHECK (retail_price_usd >= 0),
  price_usd numeric(12, 2) NOT NULL CHECK (price_usd >= 0),
  benefit_months integer NOT NULL DEFAULT 0 CHECK (benefit_months >= 0), -- 0: the product states no duration.
  usage_unit_label text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (brand_id, key),
  -- Referenced by referral_links, so that a link's product and contract belong to the same brand.
  CONSTRAINT products_with_brand UNIQUE (id, brand_id)
);
