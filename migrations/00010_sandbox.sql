-- What only sandbox organizations have: they hide what they offer, and may move their own times back.

-- Whether a user may see what a sandbox organization offers: its members, and users with an active contract with the brand.
CREATE FUNCTION may_see_sandbox(of_organization text, of_brand text, of_user text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM members AS m WHERE m.organization_id = of_organization AND m.user_id = of_user)
      OR EXISTS (SELECT 1 FROM referrer_contracts AS c
                  WHERE c.user_id = of_user AND c.brand_id = of_brand AND c.status = 'Active'
                    AND (c.ends_at IS NULL OR c.ends_at > clock_timestamp()))
$$;

-- Moves the times of one sandbox organization that are still ahead back by a number of seconds: the ends of live reservations, of valid batches, of
-- their windows and of open contracts. Records the end of the reservations that are over then, and writes the audit entry. Events, redemptions and
-- times that have passed stay as they are.
--
-- SECURITY DEFINER: the role of the service may change none of these columns. This function is its only way, and only for a sandbox. Lock order:
-- organization, batches, vouchers, reservations. Raises restrict_violation for a live organization or a bad number of seconds, and
-- program_limit_exceeded for more than 10 000 live reservations.
CREATE FUNCTION advance_sandbox(
  of_organization text, by_seconds integer, by_key text, os_user text, host text,
  OUT ended_tickets text[], OUT ended_voucher_ids text[], OUT expired_batch_ids text[], OUT vouchers_expired bigint
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  back interval := make_interval(secs => by_seconds);
  valid_batches text[];
  held_vouchers text[];
  decided_at timestamptz;
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
  WITH moved AS (
    SELECT r.ticket, greatest(r.expires_at - back, r.started_at + interval '1 millisecond') AS expires_at
      FROM reservations AS r WHERE r.voucher_id = ANY (held_vouchers) AND r.state = 'Live' AND r.expires_at > decided_at
  ), written AS (
    UPDATE reservations AS r
       SET expires_at = m.expires_at,
           state = CASE WHEN m.expires_at > decided_at THEN 'Live' ELSE 'Expired' END,
           ended_at = CASE WHEN m.expires_at > decided_at THEN NULL ELSE m.expires_at END
      FROM moved AS m WHERE r.ticket = m.ticket
    RETURNING r.ticket, r.voucher_id, r.state
  )
  SELECT coalesce(array_agg(w.ticket ORDER BY w.ticket), '{}'), coalesce(array_agg(w.voucher_id ORDER BY w.ticket), '{}')
    INTO ended_tickets, ended_voucher_ids FROM written AS w WHERE w.state = 'Expired';

  -- Both ends of a window move together, so that it keeps its length.
  UPDATE batch_windows AS w SET opens_at = w.opens_at - back, closes_at = w.closes_at - back
   WHERE w.batch_id = ANY (valid_batches) AND (w.opens_at > decided_at OR w.closes_at > decided_at);
  UPDATE referrer_contracts AS c SET ends_at = c.ends_at - back FROM brands AS br
   WHERE br.organization_id = of_organization AND c.brand_id = br.id AND c.status IN ('Offered', 'Active') AND c.ends_at > decided_at;
  WITH moved AS (
    UPDATE batches AS b SET valid_until = b.valid_until - back WHERE b.id = ANY (valid_batches) AND b.valid_until > decided_at
    RETURNING b.id, b.valid_until
  )
  SELECT coalesce(array_agg(m.id ORDER BY m.id), '{}') INTO expired_batch_ids FROM moved AS m WHERE m.valid_until <= decided_at;
  SELECT count(*) INTO vouchers_expired FROM vouchers AS v WHERE v.batch_id = ANY (expired_batch_ids) AND v.status = 'Active';

  INSERT INTO audit_entries (os_user, host, command, arguments, entity_type, entity_id, before, after)
  VALUES (os_user, host, 'sandbox advance', jsonb_build_object('seconds', by_seconds, 'key', by_key), 'Organization', of_organization, '{}',
          jsonb_build_object('advancedSeconds', by_seconds, 'reservationsEnded', cardinality(ended_tickets), 'vouchersExpired', vouchers_expired));
END
$$;

REVOKE ALL ON FUNCTION advance_sandbox(text, integer, text, text, text) FROM PUBLIC;
