-- Lets the tables be in any schema. `npm run migrate` and each process use the schema of the tables alone, as their search_path.

-- As in 00006, but looks for the table where the session does.
CREATE OR REPLACE FUNCTION check_redemption_times() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz := (SELECT min(i.redeemed_at) FROM inserted AS i);
BEGIN
  IF earliest IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'INSERT on redemptions is not allowed: the transaction must be READ COMMITTED' USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock_shared((21092::bigint << 48) + (extract(epoch FROM earliest) * 1000)::bigint);
  IF (SELECT earliest >= c.closed_until FROM redemptions_closed AS c WHERE c.singleton) IS NOT TRUE THEN
    RAISE EXCEPTION 'a redemption at % is earlier than closed_until', earliest USING ERRCODE = 'VS001';
  END IF;
  RETURN NULL;
END
$$;

-- Functions with the rights of the owner must not look where the caller chooses.
ALTER FUNCTION add_mark() SET search_path FROM CURRENT;
ALTER FUNCTION advance_sandbox(text, integer, text, text, text) SET search_path FROM CURRENT;
