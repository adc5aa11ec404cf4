-- The final statements of months, as they were first read: a later rename or erasure changes none. Where the log is on,
-- its worker signs each final statement. Readers get the statement as final once it has this note.
CREATE TABLE statements (
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  month text COLLATE "C" NOT NULL CHECK (month ~ '^2\d{3}-(0[1-9]|1[0-2])$'), -- In UTC.
  content text NOT NULL CHECK (content::json ->> 'final' = 'true' AND content::json ->> 'month' = month),
  note_due boolean NOT NULL DEFAULT false, -- Whether the log was on when the statement was kept.
  note text CONSTRAINT statements_note_due CHECK (note IS NULL OR note_due), -- Signed over month, organization, totals and hash.
  PRIMARY KEY (organization_id, month)
);
CREATE INDEX statements_to_sign ON statements (organization_id, month) WHERE note_due AND note IS NULL;
CREATE TRIGGER statements_permanent BEFORE DELETE OR TRUNCATE ON statements
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a final statement is permanent');
CREATE TRIGGER statements_signed_once BEFORE UPDATE ON statements FOR EACH ROW
  WHEN (OLD.note IS NOT NULL OR (NEW.made_at, NEW.organization_id, NEW.month, NEW.content, NEW.note_due)
        IS DISTINCT FROM (OLD.made_at, OLD.organization_id, OLD.month, OLD.content, OLD.note_due))
  EXECUTE FUNCTION reject_change('a final statement is permanent');

-- Nothing can be added to the month of a statement.
CREATE FUNCTION check_statement_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT ((NEW.month || '-01')::timestamp + interval '1 month') AT TIME ZONE 'UTC' <= c.complete_until
        FROM redemptions_closed AS c WHERE c.singleton) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'INSERT on statements is not allowed: redemptions may be added to %', NEW.month USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER statements_of_complete_months BEFORE INSERT ON statements FOR EACH ROW EXECUTE FUNCTION check_statement_time();
