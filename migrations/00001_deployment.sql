-- What is true of this deployment as a whole: one row, written once, here.

-- Refuses whatever statement fired it. Shared by every append-only table.
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % is refused: %', TG_OP, TG_TABLE_NAME, TG_ARGV[0] USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TABLE deployment (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Event payloads are kept unchanged from this moment on; served as canonPreservedSinceUtc.
  canon_preserved_since timestamptz NOT NULL
);

INSERT INTO deployment (canon_preserved_since) VALUES (date_trunc('milliseconds', clock_timestamp()));

CREATE TRIGGER deployment_is_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON deployment
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('it is written once');
