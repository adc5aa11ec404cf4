-- Operators who sign in to the operator pages under a name of their own, and how each audit entry knows who has acted.

CREATE TABLE operators (
  id text COLLATE "C" PRIMARY KEY,
  -- The user name of HTTP Basic, which cannot contain a colon.
  name text NOT NULL CHECK (name ~ '^[^[:cntrl:]:]{1,100}$' AND btrim(name) = name),
  role text NOT NULL CHECK (role IN ('viewer', 'operator', 'admin')),
  expires_at timestamptz,
  revoked_at timestamptz
);

-- A name belongs to one operator. Once revoked, it is free again.
CREATE UNIQUE INDEX operators_name ON operators (name) WHERE revoked_at IS NULL;

CREATE TABLE operator_tokens (
  token_hash bytea PRIMARY KEY CHECK (octet_length(token_hash) = 32), -- SHA-256 of the token, which is never stored.
  operator_id text COLLATE "C" NOT NULL REFERENCES operators,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz -- NULL: the current token. A rotated token works until this moment.
);

-- One current token for each operator.
CREATE UNIQUE INDEX operator_tokens_current ON operator_tokens (operator_id) WHERE expires_at IS NULL;

-- Finds all tokens of an operator, for rotation and listing.
CREATE INDEX operator_tokens_by_operator ON operator_tokens (operator_id);

-- How it is known who has acted: a named operator's token, a proxy's JWT, OPS_TOKEN with any name, the user of a command, or an API key. NULL in
-- entries of earlier releases.
ALTER TABLE audit_entries ADD COLUMN by text CHECK (by IN ('operator', 'jwt', 'shared', 'command', 'key'));

-- As in 00011. The function advance_sandbox of 00010 does not say that it is an API key that has acted.
CREATE OR REPLACE FUNCTION stamp_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.at := date_trunc('milliseconds', clock_timestamp());
  NEW.database_role := session_user;
  IF NEW.command = 'sandbox advance' THEN
    NEW."by" := coalesce(NEW."by", 'key');
  END IF;
  RETURN NEW;
END
$$;
