-- The time before which the redemptions are final. After `closed_until` is committed, no transaction can insert an earlier redemption.

CREATE TABLE redemptions_closed (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Every redemption before this time is committed, or its open transaction holds the advisory lock for its time.
  closed_until timestamptz NOT NULL CHECK (closed_until = date_trunc('milliseconds', closed_until))
);

INSERT INTO redemptions_closed (closed_until) VALUES ('epoch');

-- Moves forward only, and never past the clock.
CREATE FUNCTION check_redemptions_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.closed_until < OLD.closed_until OR NEW.closed_until > clock_timestamp() THEN
    RAISE EXCEPTION 'UPDATE on redemptions_closed is not allowed: the time moves forward, up to the present'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER redemptions_closed_forward BEFORE UPDATE ON redemptions_closed
  FOR EACH ROW EXECUTE FUNCTION check_redemptions_closed();

CREATE TRIGGER redemptions_closed_no_delete BEFORE DELETE OR TRUNCATE ON redemptions_closed
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');

-- Refuses redemptions in the closed time. The advisory lock comes first. If a reader closes this time after the check below, it sees the lock
-- in pg_locks until this transaction ends, even if it is a prepared transaction. The key has 21092 in its upper 16 bits and the time, in
-- milliseconds since 1970, in the others (find_complete_until reads it). The check needs a snapshot that is newer than the lock, which
-- only READ COMMITTED gives. On VS001, the worker decides the batch again with a later time.
CREATE FUNCTION check_redemption_times() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE TRIGGER redemptions_in_open_time AFTER INSERT ON redemptions REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION check_redemption_times();

-- The cursor of the redemption list holds a time in milliseconds. All existing rows are in milliseconds, so NOT VALID skips the table scan.
ALTER TABLE redemptions ADD CONSTRAINT redemptions_in_milliseconds
  CHECK (redeemed_at = date_trunc('milliseconds', redeemed_at)) NOT VALID;
