-- The identity of this deployment and of its database, and the functions that the tables of every topic share.

-- Trigger function: rejects the statement that fired it and gives the trigger's argument as the reason.
CREATE FUNCTION reject_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is not allowed: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END
$$;

-- Raises VS001 unless a statement found as many rows as its caller decided on. The service sends its last writes together with COMMIT and does not
-- wait for their results, so the statement itself must roll the transaction back.
CREATE FUNCTION assert_row_count(actual bigint, expected integer, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF actual <> expected THEN
    RAISE EXCEPTION 'found % of % expected %', actual, expected, what USING ERRCODE = 'VS001';
  END IF;
END
$$;

-- One row, which this migration writes.
CREATE TABLE deployment (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- The service stores the exact event payloads since this time. Served as canonPreservedSinceUtc.
  canon_preserved_since timestamptz NOT NULL,
  -- Part of every queue key, job and reply, so that processes of another deployment take no part in this one's work. Short (48 random bits), because
  -- Redis reads it many times in every job.
  id text COLLATE "C" NOT NULL,
  -- The server and database that wrote this row. In a copy of the database, they differ from the current server and database.
  system_identifier bigint NOT NULL,
  database_oid oid NOT NULL
);

INSERT INTO deployment (canon_preserved_since, id, system_identifier, database_oid)
SELECT date_trunc('milliseconds', clock_timestamp()), left(replace(gen_random_uuid()::text, '-', ''), 12), s.system_identifier, d.oid
  FROM pg_control_system() AS s JOIN pg_database AS d ON d.datname = current_database();

CREATE FUNCTION check_deployment_update() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.canon_preserved_since <> OLD.canon_preserved_since OR NEW.id = OLD.id
     OR NEW.system_identifier <> (SELECT s.system_identifier FROM pg_control_system() AS s)
     OR NEW.database_oid <> (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
  THEN
    RAISE EXCEPTION 'UPDATE on deployment is not allowed: only an adoption changes the row, to a new id and the identity of this database'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER deployment_adoption_only BEFORE UPDATE ON deployment FOR EACH ROW EXECUTE FUNCTION check_deployment_update();
CREATE TRIGGER deployment_permanent BEFORE DELETE OR TRUNCATE ON deployment FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');
