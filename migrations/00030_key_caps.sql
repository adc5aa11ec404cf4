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
