-- The tables of vouchers may lie in a schema of their own, and on another server than the one that a client is connected to.

-- As before, but reads `redemptions_closed` in the schema of `redemptions`. Before, the search path chose the schema.
CREATE OR REPLACE FUNCTION check_redemption_times() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz := (SELECT min(i.redeemed_at) FROM inserted AS i);
  is_open boolean;
BEGIN
  IF earliest IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'INSERT on redemptions is not allowed: the transaction must be READ COMMITTED' USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock_shared((21092::bigint << 48) + (extract(epoch FROM earliest) * 1000)::bigint);
  EXECUTE format('SELECT $1 >= c.closed_until FROM %I.redemptions_closed AS c WHERE c.singleton', TG_TABLE_SCHEMA) INTO is_open USING earliest;
  IF is_open IS NOT TRUE THEN
    RAISE EXCEPTION 'a redemption at % is earlier than closed_until', earliest USING ERRCODE = 'VS001';
  END IF;
  RETURN NULL;
END
$$;

-- The earliest redemption of a transaction that has not ended, by the advisory locks of check_redemption_times. A function, so that it runs
-- on the server that has the redemptions.
CREATE FUNCTION find_earliest_open_redemption() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$
  SELECT min(timestamptz 'epoch' + (((l.classid::bigint << 32) | l.objid::bigint) - (21092::bigint << 48)) * interval '1 millisecond')
    FROM pg_locks AS l
   WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid::bigint >> 16 = 21092
     AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
$$;
