-- Where the log is on, its worker signs each final statement. Readers get the statement as final once it has this note.

-- note_due: the log was on when the statement was kept. note: a signed note over its month, organization, totals and hash.
ALTER TABLE statements
  ADD COLUMN note_due boolean NOT NULL DEFAULT false,
  ADD COLUMN note text,
  ADD CONSTRAINT statements_note_due CHECK (note IS NULL OR note_due);
CREATE INDEX statements_to_sign ON statements (organization_id, month) WHERE note_due AND note IS NULL;

DROP TRIGGER statements_permanent ON statements;
CREATE TRIGGER statements_permanent BEFORE DELETE OR TRUNCATE ON statements
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a final statement is permanent');
CREATE TRIGGER statements_signed_once BEFORE UPDATE ON statements FOR EACH ROW
  WHEN (OLD.note IS NOT NULL OR (NEW.made_at, NEW.organization_id, NEW.month, NEW.content, NEW.note_due)
        IS DISTINCT FROM (OLD.made_at, OLD.organization_id, OLD.month, OLD.content, OLD.note_due))
  EXECUTE FUNCTION reject_change('a final statement is permanent');
