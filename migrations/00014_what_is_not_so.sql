-- The same demand, in the writer's words of what is not so any more. The one without words stays for processes of the release before, which
-- run beside newer ones while they are replaced.
CREATE FUNCTION demand_rows(met bigint, wanted integer, what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF met <> wanted THEN
    RAISE EXCEPTION '% of % %', met, wanted, what USING ERRCODE = 'VS001';
  END IF;
END
$$;
