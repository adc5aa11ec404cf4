-- What a key may redeem on one day, UTC. NULL: without a limit.
ALTER TABLE api_keys
  ADD COLUMN max_per_day integer CHECK (max_per_day > 0),
  ADD COLUMN max_amount_per_day_usd numeric(12, 2) CHECK (max_amount_per_day_usd >= 0);

-- What a key has redeemed on one day, UTC: one row for each day on which it had a cap. `amount_usd` is the sum of the prices of the batches.
CREATE TABLE key_days (
  key_id text COLLATE "C" NOT NULL REFERENCES api_keys,
  day date NOT NULL,
  redemptions integer NOT NULL CHECK (redemptions > 0),
  amount_usd numeric(14, 2) NOT NULL,
  PRIMARY KEY (day, key_id)
);

-- The lock of a key's caps: its holder in exclusive mode alone redeems by the key. The upper 16 bits set these locks apart from all other
-- advisory locks.
CREATE FUNCTION key_cap_lock(key_id text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
  SELECT (21095::bigint << 48) + (hashtext(key_id)::bigint & 4294967295)
$$;

-- Counts the redemptions of keys with a cap, and refuses those that would exceed it. The lock comes first, and the next statement has a newer
-- snapshot: so either this transaction sees a new cap, or the transaction that sets the cap sees these redemptions. On VS001, the worker
-- decides again.
CREATE FUNCTION count_capped_redemptions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  over_cap text;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(key_cap_lock(o.key_id)) FROM (SELECT DISTINCT i.key_id FROM inserted AS i ORDER BY i.key_id) AS o;
  IF NOT EXISTS (SELECT FROM inserted AS i JOIN api_keys AS k ON k.id = ANY (ARRAY[i.key_id])
                  WHERE k.max_per_day IS NOT NULL OR k.max_amount_per_day_usd IS NOT NULL) THEN
    RETURN NULL;
  END IF;
  WITH counted AS (
    INSERT INTO key_days AS d (key_id, day, redemptions, amount_usd)
    SELECT i.key_id, (i.redeemed_at AT TIME ZONE 'UTC')::date, count(*), sum(b.price_usd)
      FROM inserted AS i
      JOIN api_keys AS k ON k.id = ANY (ARRAY[i.key_id])
      JOIN vouchers AS v ON v.id = ANY (ARRAY[i.voucher_id])
      JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
     WHERE k.max_per_day IS NOT NULL OR k.max_amount_per_day_usd IS NOT NULL
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
CREATE TRIGGER redemptions_within_caps AFTER INSERT ON redemptions REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION count_capped_redemptions();
