-- What a caller was told about a reference, a refusal or a timeout, ends every attempt of this reference that was made before. An attempt carries the
-- end and the generation that its first read saw. A worker redeems nothing for it if there is another end, or if an end that the attempt may not have
-- seen was deleted since.

-- One row. Ends of two generations ago may be deleted, and attempts of two generations ago redeem nothing.
CREATE TABLE reference_generation (
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  generation bigint NOT NULL DEFAULT 2,
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton)
);

INSERT INTO reference_generation DEFAULT VALUES;

-- The last end of each reference.
CREATE TABLE reference_ends (
  version bigint GENERATED ALWAYS AS IDENTITY, -- Drawn for each end, so never used twice.
  generation bigint NOT NULL, -- The one when the end was committed.
  organization_id text COLLATE "C" NOT NULL,
  external_ref text COLLATE "C" NOT NULL,
  PRIMARY KEY (organization_id, external_ref)
);

CREATE INDEX reference_ends_by_generation ON reference_ends (generation);

-- A generation begins only while no end of the one before is uncommitted: whoever writes an end shares this lock and reads the generation after it.
-- So an attempt that has not seen an end is not of a later generation than the end.
CREATE FUNCTION check_reference_generation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.generation <> OLD.generation + 1 THEN
    RAISE EXCEPTION 'UPDATE on reference_generation is not allowed: generations follow each other' USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock(21094::bigint << 48);
  RETURN NEW;
END
$$;
CREATE TRIGGER reference_generation_forward BEFORE UPDATE ON reference_generation FOR EACH ROW EXECUTE FUNCTION check_reference_generation();
CREATE TRIGGER reference_generation_permanent BEFORE DELETE OR TRUNCATE ON reference_generation
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');

CREATE FUNCTION check_reference_end_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT OLD.generation <= g.generation - 2 FROM reference_generation AS g WHERE g.singleton) IS NOT TRUE THEN
    RAISE EXCEPTION 'DELETE on reference_ends is not allowed: an attempt may not have seen the end' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN OLD;
END
$$;
CREATE TRIGGER reference_ends_kept BEFORE DELETE ON reference_ends FOR EACH ROW EXECUTE FUNCTION check_reference_end_delete();
CREATE TRIGGER reference_ends_forward BEFORE UPDATE ON reference_ends FOR EACH ROW
  WHEN (NEW.version <= OLD.version OR NEW.generation < OLD.generation) EXECUTE FUNCTION reject_change('only a later end replaces one');
CREATE TRIGGER reference_ends_no_truncate BEFORE TRUNCATE ON reference_ends
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('an attempt may not have seen the ends');
