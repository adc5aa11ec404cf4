-- Ended reservations without a redemption are deleted after RESERVATION_RETENTION_DAYS. The sweeper walks the primary key, whose order is that of
-- time, so no index is added.

-- Without an index on redemptions.ticket, the foreign key would read the whole table for each deleted reservation. The triggers below prove the same:
-- a redemption names a reservation that is not over, and only a released or expired one can be deleted.
ALTER TABLE redemptions DROP CONSTRAINT redemptions_ticket_fkey;

CREATE FUNCTION check_redemption_ticket() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM reservations AS r
                  WHERE r.ticket = NEW.ticket AND r.voucher_id = NEW.voucher_id AND r.state IN ('Live', 'Consumed')) THEN
    RAISE EXCEPTION 'a redemption of % names no live reservation of the voucher: %', NEW.voucher_id, NEW.ticket
      USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'redemptions_ticket';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER redemptions_ticket AFTER INSERT ON redemptions FOR EACH ROW WHEN (NEW.ticket IS NOT NULL) EXECUTE FUNCTION check_redemption_ticket();

-- Deliveries of webhooks read the reservations of the last 30 days.
CREATE TRIGGER reservations_kept BEFORE DELETE ON reservations FOR EACH ROW
  WHEN ((OLD.state IN ('Released', 'Expired') AND OLD.ended_at < clock_timestamp() - interval '30 days') IS NOT TRUE)
  EXECUTE FUNCTION reject_change('only a reservation that ended unused 30 days ago is deleted');
CREATE TRIGGER reservations_no_truncate BEFORE TRUNCATE ON reservations
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('redemptions name their reservations');
