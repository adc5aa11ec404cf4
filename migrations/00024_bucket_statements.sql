-- Statements and triggers that also work while the tables of vouchers are in a distributed schema.

-- As before, but new times are computed before the rows are updated: Citus refuses a column minus an interval in UPDATE. The rows that it
-- changes, the order of locks and the errors are the same.
CREATE OR REPLACE FUNCTION advance_sandbox(
  of_organization text, by_seconds integer, by_key text, os_user text, host text,
  OUT ended_tickets text[], OUT ended_voucher_ids text[], OUT expired_batch_ids text[], OUT vouchers_expired bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  back interval := make_interval(secs => by_seconds);
  valid_batches text[];
  held_vouchers text[];
  decided_at timestamptz;
  moved_ids text[];
  moved_kinds text[];
  moved_from timestamptz[];
  moved_to timestamptz[];
BEGIN
  IF (by_seconds BETWEEN 1 AND 34560000) IS NOT TRUE THEN
    RAISE EXCEPTION 'a sandbox moves by 1 to 34560000 seconds' USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM FROM organizations AS o WHERE o.id = of_organization AND o.sandbox FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'organization % is not a sandbox', of_organization USING ERRCODE = 'restrict_violation';
  END IF;

  valid_batches := ARRAY(
    SELECT b.id FROM batches AS b JOIN products AS p ON p.id = b.product_id JOIN brands AS br ON br.id = p.brand_id
     WHERE br.organization_id = of_organization AND b.valid_until > clock_timestamp() ORDER BY b.id FOR NO KEY UPDATE OF b);
  held_vouchers := ARRAY(
    SELECT r.voucher_id FROM reservations AS r
     WHERE r.ended_at IS NULL AND r.expires_at > (SELECT clock_timestamp()) AND r.organization_id = of_organization LIMIT 10001);
  IF cardinality(held_vouchers) > 10000 THEN
    RAISE EXCEPTION 'sandbox % has more than 10000 live reservations', of_organization USING ERRCODE = 'program_limit_exceeded';
  END IF;
  PERFORM FROM vouchers AS v WHERE v.id = ANY (held_vouchers) ORDER BY v.id FOR NO KEY UPDATE;
  decided_at := date_trunc('milliseconds', clock_timestamp());

  -- The start stays. A reservation lasts at least a millisecond, so that its row stays possible.
  SELECT array_agg(r.ticket), array_agg(greatest(r.expires_at - back, r.started_at + interval '1 millisecond')) INTO moved_ids, moved_to
    FROM reservations AS r WHERE r.voucher_id = ANY (held_vouchers) AND r.state = 'Live' AND r.expires_at > decided_at;
  UPDATE reservations AS r
     SET expires_at = m.expires_at,
         state = CASE WHEN m.expires_at > decided_at THEN 'Live' ELSE 'Expired' END,
         ended_at = CASE WHEN m.expires_at > decided_at THEN NULL ELSE m.expires_at END
    FROM unnest(moved_ids, moved_to) AS m (ticket, expires_at) WHERE r.ticket = m.ticket;
  SELECT coalesce(array_agg(r.ticket ORDER BY r.ticket), '{}'), coalesce(array_agg(r.voucher_id ORDER BY r.ticket), '{}')
    INTO ended_tickets, ended_voucher_ids FROM reservations AS r WHERE r.ticket = ANY (moved_ids) AND r.state = 'Expired';

  -- Both ends of a window move together, so that it keeps its length.
  SELECT array_agg(w.batch_id), array_agg(w.kind), array_agg(w.opens_at - back), array_agg(w.closes_at - back)
    INTO moved_ids, moved_kinds, moved_from, moved_to
    FROM batch_windows AS w WHERE w.batch_id = ANY (valid_batches) AND (w.opens_at > decided_at OR w.closes_at > decided_at);
  UPDATE batch_windows AS w SET opens_at = m.opens_at, closes_at = m.closes_at
    FROM unnest(moved_ids, moved_kinds, moved_from, moved_to) AS m (batch_id, kind, opens_at, closes_at)
   WHERE w.batch_id = m.batch_id AND w.kind = m.kind;
  SELECT array_agg(c.id), array_agg(c.ends_at - back) INTO moved_ids, moved_to
    FROM referrer_contracts AS c JOIN brands AS br ON br.id = c.brand_id
   WHERE br.organization_id = of_organization AND c.status IN ('Offered', 'Active') AND c.ends_at > decided_at;
  UPDATE referrer_contracts AS c SET ends_at = m.ends_at FROM unnest(moved_ids, moved_to) AS m (id, ends_at)
   WHERE c.id = m.id;
  SELECT array_agg(b.id), array_agg(b.valid_until - back) INTO moved_ids, moved_to
    FROM batches AS b WHERE b.id = ANY (valid_batches) AND b.valid_until > decided_at;
  UPDATE batches AS b SET valid_until = m.valid_until FROM unnest(moved_ids, moved_to) AS m (id, valid_until) WHERE b.id = m.id;
  expired_batch_ids := ARRAY(
    SELECT m.id FROM unnest(moved_ids, moved_to) AS m (id, valid_until) WHERE m.valid_until <= decided_at ORDER BY m.id);
  SELECT count(*) INTO vouchers_expired FROM vouchers AS v WHERE v.batch_id = ANY (expired_batch_ids) AND v.status = 'Active';

  INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, before, after)
  VALUES (os_user, host, 'sandbox advance', jsonb_build_object('seconds', by_seconds, 'key', by_key), 'Organization', of_organization, '{}',
          jsonb_build_object('advancedSeconds', by_seconds, 'reservationsEnded', cardinality(ended_tickets), 'vouchersExpired', vouchers_expired));
END
$$;

-- Triggers of TRUNCATE apart from those of other events. Citus does not create a trigger of both on tables that are already distributed.
CREATE OR REPLACE TRIGGER redemptions_closed_no_delete BEFORE DELETE ON redemptions_closed
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');
CREATE TRIGGER redemptions_closed_no_truncate BEFORE TRUNCATE ON redemptions_closed
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');
CREATE OR REPLACE TRIGGER log_batches_no_delete BEFORE DELETE ON log_batches FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_batches_no_truncate BEFORE TRUNCATE ON log_batches FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE OR REPLACE TRIGGER log_bundles_no_delete BEFORE DELETE ON log_bundles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_bundles_no_truncate BEFORE TRUNCATE ON log_bundles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE OR REPLACE TRIGGER log_tiles_no_delete BEFORE DELETE ON log_tiles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tiles_no_truncate BEFORE TRUNCATE ON log_tiles FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE OR REPLACE TRIGGER log_tree_no_delete BEFORE DELETE ON log_tree FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_tree_no_truncate BEFORE TRUNCATE ON log_tree FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE OR REPLACE TRIGGER log_lost_no_delete BEFORE DELETE ON log_lost FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
CREATE TRIGGER log_lost_no_truncate BEFORE TRUNCATE ON log_lost FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the log is permanent');
