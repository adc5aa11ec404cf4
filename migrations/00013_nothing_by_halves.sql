-- A transaction sends its last writes together with COMMIT, without waiting for what they found. So the database itself keeps nothing
-- of it when one of them found fewer rows than it was decided for.
CREATE FUNCTION demand_rows(met bigint, wanted integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF met <> wanted THEN
    RAISE EXCEPTION '% of % rows are still what was decided on', met, wanted USING ERRCODE = 'VS001';
  END IF;
END
$$;
