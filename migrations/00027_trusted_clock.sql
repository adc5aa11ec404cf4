-- When an operator said that the database's clock is right. Processes that saw it jump ahead follow it again from then on.

ALTER TABLE redemptions_closed ADD COLUMN clock_trusted_at timestamptz;

-- As before, but with that statement a time that a wrong clock has put into the future moves back to the present.
CREATE OR REPLACE FUNCTION check_redemptions_closed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  is_repair boolean := NEW.clock_trusted_at IS DISTINCT FROM OLD.clock_trusted_at AND OLD.closed_until > clock_timestamp();
BEGIN
  IF (NEW.closed_until < OLD.closed_until AND NOT is_repair) OR NEW.closed_until > clock_timestamp() THEN
    RAISE EXCEPTION 'UPDATE on redemptions_closed is not allowed: the time moves forward, up to the present'
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;
