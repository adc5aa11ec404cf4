-- The audit log of administration: one row per change, written in its transaction, and one per page that an operator looks at. Append-only.

CREATE TABLE audit_entries (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL, -- The database's clock and the connected role. A trigger sets both, whatever the INSERT says.
  database_role text NOT NULL,
  os_user text NOT NULL CHECK (os_user <> ''), -- The operating-system user and machine, as the client reports them.
  host text NOT NULL CHECK (host <> ''),
  command text NOT NULL CHECK (command <> ''), -- Noun and verb of voucherctl, and its arguments without secrets.
  arguments jsonb NOT NULL,
  entity_type text NOT NULL CHECK (entity_type <> ''),
  entity_id text COLLATE "C" NOT NULL CHECK (entity_id <> ''),
  -- The entity before and after the change, without secrets. `before` is NULL if the change created the entity; `after` is NULL if it deleted it.
  before jsonb,
  after jsonb,
  -- Only an operator's look at a page changes nothing.
  CONSTRAINT audit_entries_change
    CHECK (before IS DISTINCT FROM after OR (before IS NULL AND after IS NULL AND command LIKE 'page %'))
);

CREATE INDEX audit_entries_by_entity ON audit_entries (entity_id, id);

CREATE FUNCTION stamp_audit_entry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.at := date_trunc('milliseconds', clock_timestamp());
  NEW.database_role := session_user;
  RETURN NEW;
END
$$;
CREATE TRIGGER audit_entries_stamp BEFORE INSERT ON audit_entries FOR EACH ROW EXECUTE FUNCTION stamp_audit_entry();
CREATE TRIGGER audit_entries_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_entries
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('audit entries are permanent');
