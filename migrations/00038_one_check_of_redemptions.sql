-- One function checks the times and the caps of new redemptions, because both read the same rows. The trigger is dropped
-- first: this takes the strongest lock at once, so that no transaction that has read the table and will write to it can
-- cause a deadlock.
DROP TRIGGER redemptions_in_open_time ON redemptions;
DROP FUNCTION check_redemption_times();

-- Refuses redemptions in the closed time. Counts those of keys with a cap, and refuses those that would exceed it.
--
-- The locks come first. The next statement has a newer snapshot, which only READ COMMITTED gives. If a reader closes
-- the time after the check, it sees the lock in pg_locks until this transaction ends, even if it is a prepared
-- transaction. The key of that lock has 21092 in its upper 16 bits and the time, in milliseconds since 1970, in the
-- others (prove_complete_until reads it). Either this transaction sees a new cap, or the transaction that sets the cap
-- sees these redemptions. On VS001, the worker decides the batch again.
CREATE FUNCTION check_new_redemptions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz;
  keys text[];
  closed timestamptz;
  capped text[];
  over_cap text;
BEGIN
  SELECT min(i.redeemed_at), array_agg(DISTINCT i.key_id) INTO earliest, keys FROM inserted AS i;
  IF earliest IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'INSERT on redemptions is not allowed: the transaction must be READ COMMITTED'
      USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock_shared((21092::bigint << 48) + (extract(epoch FROM earliest) * 1000)::bigint),
          pg_advisory_xact_lock_shared(key_cap_lock(w.key_id))
     FROM unnest(keys) AS w (key_id);
  SELECT c.closed_until, ARRAY(SELECT k.id FROM api_keys AS k
                                WHERE k.id = ANY (keys)
                                  AND (k.max_per_day IS NOT NULL OR k.max_amount_per_day_usd IS NOT NULL))
    INTO closed, capped FROM redemptions_closed AS c WHERE c.singleton;
  IF (earliest >= closed) IS NOT TRUE THEN
    RAISE EXCEPTION 'a redemption at % is earlier than closed_until', earliest USING ERRCODE = 'VS001';
  END IF;
  IF cardinality(capped) = 0 THEN
    RETURN NULL;
  END IF;
  WITH counted AS (
    INSERT INTO key_days AS d (key_id, day, redemptions, amount_usd)
    SELECT i.key_id, (i.redeemed_at AT TIME ZONE 'UTC')::date, count(*), sum(b.price_usd)
      FROM inserted AS i
      JOIN vouchers AS v ON v.id = ANY (ARRAY[i.voucher_id])
      JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
     WHERE i.key_id = ANY (capped)
     GROUP BY 1, 2 ORDER BY 2, 1
        ON CONFLICT (day, key_id) DO UPDATE
       SET redemptions = d.redemptions + excluded.redemptions, amount_usd = d.amount_usd + excluded.amount_usd
    RETURNING d.key_id, d.redemptions, d.amount_usd
  )
  SELECT c.key_id INTO over_cap FROM counted AS c JOIN api_keys AS k ON k.id = ANY (ARRAY[c.key_id])
   WHERE c.redemptions > k.max_per_day OR c.amount_usd > k.max_amount_per_day_usd LIMIT 1;
  IF over_cap IS NOT NULL THEN
    RAISE EXCEPTION 'the key % has reached its daily limit', over_cap USING ERRCODE = 'VS001';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER redemptions_checked AFTER INSERT ON redemptions REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION check_new_redemptions();
