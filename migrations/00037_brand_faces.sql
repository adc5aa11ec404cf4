-- What pages show of a brand to customers, besides its name.
ALTER TABLE brands ADD COLUMN colour text COLLATE "C" CHECK (colour ~ '^#[0-9a-f]{6}$');

-- Logos stand apart from brands, whose rows are read with every voucher. The name of a logo has a hash of its content, so
-- caches may keep the content.
CREATE TABLE brand_logos (
  brand_id text COLLATE "C" PRIMARY KEY REFERENCES brands,
  name text COLLATE "C" CHECK (name ~ '^[0-9a-f]{32}\.(png|jpg|webp)$'),
  content bytea CHECK (octet_length(content) BETWEEN 1 AND 262144),
  CHECK ((name IS NULL) = (content IS NULL)), -- NULL: the logo was removed.
  CHECK (left(name, 32) = left(encode(sha256(content), 'hex'), 32))
);
CREATE INDEX brand_logos_by_name ON brand_logos (name);
