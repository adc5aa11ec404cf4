-- The final statements of months, as they were first read: a later rename or erasure changes none.
CREATE TABLE statements (
  made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  organization_id text COLLATE "C" NOT NULL REFERENCES organizations,
  month text COLLATE "C" NOT NULL CHECK (month ~ '^2\d{3}-(0[1-9]|1[0-2])$'), -- In UTC.
  content text NOT NULL CHECK (content::json ->> 'final' = 'true' AND content::json ->> 'month' = month),
  PRIMARY KEY (organization_id, month)
);
CREATE TRIGGER statements_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON statements
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a final statement is permanent');

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
