-- The time before which the list of redemptions is complete, as all processes have told it. Each of them would otherwise tell its own, and partners
-- that read from two of them would see the time go back.

ALTER TABLE redemptions_closed
  ADD COLUMN complete_until timestamptz NOT NULL DEFAULT 'epoch'
  CONSTRAINT redemptions_complete_in_milliseconds CHECK (complete_until = date_trunc('milliseconds', complete_until));

-- What is complete is closed. An operator who moves closed_until back from the future moves the complete time, too.
CREATE FUNCTION keep_complete_until_closed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.complete_until := NEW.closed_until;
  RETURN NEW;
END
$$;
CREATE TRIGGER redemptions_closed_complete BEFORE UPDATE ON redemptions_closed FOR EACH ROW
  WHEN (NEW.complete_until > NEW.closed_until) EXECUTE FUNCTION keep_complete_until_closed();

-- Otherwise it moves forward only.
CREATE TRIGGER redemptions_closed_complete_forward BEFORE UPDATE ON redemptions_closed FOR EACH ROW
  WHEN (NEW.complete_until < least(OLD.complete_until, NEW.closed_until))
  EXECUTE FUNCTION reject_change('the complete time moves forward');

-- As prove_complete_until (src/core/redeem/db/redemptions.sql) does. No insert of a redemption is between its lock and its check, because this transaction has
-- the table alone.
UPDATE redemptions_closed AS c
   SET complete_until = least(c.closed_until, (
         SELECT min(timestamptz 'epoch' + (((l.classid::bigint << 32) | l.objid::bigint) - (21092::bigint << 48)) * interval '1 millisecond')
           FROM pg_locks AS l
          WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid::bigint >> 16 = 21092
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
       ))
 WHERE c.singleton;
