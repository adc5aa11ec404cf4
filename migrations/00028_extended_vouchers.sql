-- A voucher's end can move to a later time, after issuing and even after it has passed. A look-up must not pay for it,
-- so a voucher with an end of its own has it in its row. All others have the end with which their batch was issued.

-- valid_until: the voucher's own end; NULL before its first extension. expiry_due: whether its expiry at this end is
-- not recorded yet. A redemption changes neither of them, so it still writes to no index.
-- NOT VALID: no earlier row has an end of its own.
ALTER TABLE vouchers
  ADD COLUMN valid_until timestamptz,
  ADD COLUMN expiry_due boolean NOT NULL DEFAULT false,
  ADD CONSTRAINT vouchers_expiry_due_at_own_end CHECK (NOT expiry_due OR valid_until IS NOT NULL) NOT VALID;

-- batches.valid_until is the end of the batch's windows and listings. The end of an extended batch moves after those of
-- its vouchers. issued_until is then the end with which it was issued; NULL before.
ALTER TABLE batches ADD COLUMN issued_until timestamptz;

-- When a voucher ends. The only place with this rule; a caller's plan has it inline.
CREATE FUNCTION voucher_end(own timestamptz, batch_issued_until timestamptz, batch_valid_until timestamptz)
RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(own, batch_issued_until, batch_valid_until)
$$;

-- Redeemed and Voided are final, and so is the end of such a voucher.
DROP TRIGGER vouchers_status_final ON vouchers;
CREATE TRIGGER vouchers_status_final BEFORE UPDATE ON vouchers FOR EACH ROW
  WHEN (OLD.status <> 'Active' AND (OLD.status IS DISTINCT FROM NEW.status OR OLD.valid_until IS DISTINCT FROM NEW.valid_until))
  EXECUTE FUNCTION reject_change('a redeemed or voided voucher keeps its status and its end');

-- A chain has one expired event for each end, so a second one only after an extension. Two writers cannot both see none
-- before them: each event's sequence is the next after those that its writer has seen, and sequences are unique.
DROP INDEX voucher_events_one_expiry;
CREATE FUNCTION check_one_expiry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF (SELECT e.event_type FROM voucher_events AS e
       WHERE e.voucher_id = NEW.voucher_id AND e.sequence < NEW.sequence
         AND e.event_type IN ('voucher.instance.expired', 'voucher.instance.extended')
       ORDER BY e.sequence DESC LIMIT 1) = 'voucher.instance.expired'
  THEN
    RAISE EXCEPTION 'voucher % has an expired event for its end already', NEW.voucher_id
      USING ERRCODE = 'unique_violation', CONSTRAINT = 'voucher_events_one_expiry';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER voucher_events_one_expiry BEFORE INSERT ON voucher_events FOR EACH ROW
  WHEN (NEW.event_type = 'voucher.instance.expired') EXECUTE FUNCTION check_one_expiry();

-- The API checks to which event types a webhook endpoint subscribes. A type that is never sent does no harm.
ALTER TABLE webhook_endpoints DROP CONSTRAINT webhook_endpoints_event_types_check;

-- Changes the text of a function, so that a migration shows only what is new in it.
CREATE FUNCTION pg_temp.change_function(named regprocedure, before text, after text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  definition text := pg_get_functiondef(named);
BEGIN
  IF strpos(definition, before) = 0 THEN
    RAISE EXCEPTION '% does not contain: %', named, before;
  END IF;
  EXECUTE replace(definition, before, after);
END
$$;

-- A sandbox also moves the ends of its extended vouchers.
SELECT pg_temp.change_function('advance_sandbox(text, integer, text, text, text)', before, after)
  FROM (VALUES
    ($$  held_vouchers text[];
$$, $$  held_vouchers text[];
  extended_vouchers text[];
  own_ends_passed bigint;
$$),
    ($$  PERFORM FROM vouchers AS v WHERE v.id = ANY (held_vouchers) ORDER BY v.id FOR NO KEY UPDATE;
$$, $$  extended_vouchers := ARRAY(
    SELECT v.id FROM vouchers AS v
     WHERE v.organization_id = of_organization AND v.expiry_due AND v.valid_until > (SELECT clock_timestamp()));
  PERFORM FROM vouchers AS v WHERE v.id = ANY (held_vouchers || extended_vouchers) ORDER BY v.id FOR NO KEY UPDATE;
$$),
    ($$SET valid_until = b.valid_until - back WHERE$$,
     $$SET valid_until = b.valid_until - back,
                            issued_until = b.issued_until - CASE WHEN b.issued_until > decided_at THEN back ELSE '0' END
     WHERE$$),
    ($$AND v.status = 'Active';
$$, $$AND v.status = 'Active'
     AND v.valid_until IS NULL;
  WITH moved AS (
    UPDATE vouchers AS v SET valid_until = v.valid_until - back
     WHERE v.id = ANY (extended_vouchers) AND v.status = 'Active' AND v.valid_until > decided_at
    RETURNING v.valid_until
  )
  SELECT count(*) INTO own_ends_passed FROM moved AS m WHERE m.valid_until <= decided_at;
  vouchers_expired := vouchers_expired + own_ends_passed;
$$)) AS c (before, after);
