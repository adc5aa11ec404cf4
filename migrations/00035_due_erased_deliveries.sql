-- An erased event is not sent. Its delivery becomes due at once, however long it would wait for its next attempt, so
-- that a worker ends it as Erased, in the order of the voucher's events.
CREATE FUNCTION end_erased_deliveries() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE webhook_deliveries AS d SET next_attempt_at = clock_timestamp()
   WHERE d.endpoint_id = ANY (ARRAY(SELECT e.id FROM webhook_endpoints AS e JOIN vouchers AS v USING (organization_id)
                                     WHERE v.id = NEW.voucher_id))
     AND d.voucher_id = NEW.voucher_id AND d.finished_at IS NULL
     AND d.sequence = NEW.sequence AND d.next_attempt_at > clock_timestamp();
  RETURN NULL;
END
$$;
CREATE TRIGGER voucher_events_end_deliveries AFTER UPDATE ON voucher_events FOR EACH ROW
  WHEN (OLD.payload IS NOT NULL AND NEW.payload IS NULL) EXECUTE FUNCTION end_erased_deliveries();
