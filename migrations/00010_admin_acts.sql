-- What administration did: one row for each act, written in the act's own transaction. Append-only.

CREATE TABLE admin_acts (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The database's clock, and the role that was connected, as the database knows them: whatever an INSERT says, the trigger fills them in.
  at timestamptz NOT NULL,
  database_role text NOT NULL,
  -- Who was at work on which machine, as that machine says.
  os_user text NOT NULL CHECK (os_user <> ''),
  host text NOT NULL CHECK (host <> ''),
  -- Noun and verb of voucherctl, and what was given to it besides secrets.
  command text NOT NULL CHECK (command <> ''),
  arguments jsonb NOT NULL,
  entity_type text NOT NULL CHECK (entity_type <> ''),
  entity_id text COLLATE "C" NOT NULL CHECK (entity_id <> ''),
  -- What the entity was and what it became, without secrets; NULL where there was none.
  before jsonb,
  after jsonb,
  CONSTRAINT acts_change_something CHECK (before IS DISTINCT FROM after)
);

CREATE INDEX admin_acts_by_entity ON admin_acts (entity_id, id);

CREATE FUNCTION stamp_admin_act() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.at := date_trunc('milliseconds', clock_timestamp());
  NEW.database_role := session_user;
  RETURN NEW;
END
$$;

CREATE TRIGGER admin_acts_are_stamped BEFORE INSERT ON admin_acts
  FOR EACH ROW EXECUTE FUNCTION stamp_admin_act();

CREATE TRIGGER admin_acts_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_acts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('acts of administration are kept for ever');
