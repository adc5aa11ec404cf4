-- Who owns what: organizations own brands, brands have products. Thousands of rows at most, so nothing is tuned.
-- Ids are TypeIDs (prefix and UUIDv7 in base32) kept as text, so that a row, a log line and an answer name a thing
-- alike. COLLATE "C" everywhere: byte order is their time order and compares fastest.

CREATE TABLE organizations (
  id text COLLATE "C" PRIMARY KEY,
  name text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

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
  -- 0: the listing stated no term.
  benefit_months integer NOT NULL DEFAULT 0 CHECK (benefit_months >= 0),
  usage_unit_label text,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (brand_id, key)
);
