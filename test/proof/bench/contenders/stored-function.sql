-- Contender (i): baseline (a) in one round trip, without HTTP and without checks of keys.

-- The prepared calls, numbered in the order in which pgbench makes them.
CREATE TABLE IF NOT EXISTS bench_calls (
  n bigint PRIMARY KEY,
  organization_id text NOT NULL,
  key_id text NOT NULL,
  voucher_id text NOT NULL,
  code_key text NOT NULL,
  external_ref text NOT NULL
);
CREATE SEQUENCE IF NOT EXISTS bench_call_numbers;

-- Makes a redeem code: twelve symbols in three groups, like the service's.
CREATE OR REPLACE FUNCTION bench_redeem_code() RETURNS text LANGUAGE sql AS $$
  SELECT regexp_replace(string_agg(substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + (get_byte(r.bytes, i) & 31), 1), ''),
                        '(.{4})(.{4})(.{4})', '\1-\2-\3')
    FROM (SELECT sha256(convert_to(gen_random_uuid()::text, 'UTF8')) AS bytes) AS r, generate_series(0, 11) AS i;
$$;

-- Redeems a voucher and returns its redeem code, or the code of the existing redemption under this reference.
CREATE OR REPLACE FUNCTION bench_redeem(org text, key text, voucher_code text, ref text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  v record;
  at timestamptz;
  made text;
  payload text;
  record_hash bytea;
  slot bigint;
BEGIN
  PERFORM FROM vouchers WHERE organization_id = org AND code_key = voucher_code FOR NO KEY UPDATE;
  SELECT o.*, b.valid_until, b.price_usd, b.retail_price_usd INTO v
    FROM vouchers AS o JOIN batches AS b ON b.id = o.batch_id
   WHERE o.organization_id = org AND o.code_key = voucher_code;
  at := date_trunc('milliseconds', clock_timestamp());
  SELECT redeem_code INTO made FROM redemptions WHERE organization_id = org AND external_ref = ref;
  IF made IS NOT NULL THEN RETURN made; END IF;
  IF v.status IS DISTINCT FROM 'Active' OR v.valid_until <= at THEN RAISE 'the voucher cannot be redeemed'; END IF;
  PERFORM FROM reservations WHERE voucher_id = v.id AND state = 'Live';
  IF FOUND OR v.sealed_sequence <> v.last_sequence THEN RAISE 'only free vouchers with sealed events'; END IF;
  made := bench_redeem_code();
  -- The event in RFC 8785 form: names in order, numbers without trailing zeros.
  payload := format(
    '{"actorConnectedId":%s,"actorIsEmployee":null,"code":"VCH004","data":{"externalRef":%s,"nonce":"%s","priceUsd":%s,'
    '"redeemCode":"%s","retailPriceUsd":%s,"serial":%s,"ticket":null,"voucherCode":%s},"entityId":%s,'
    '"entityType":"VoucherInstance","eventType":"voucher.instance.redeemed","occurredAt":"%s","previousHash":"%s",'
    '"sequence":%s,"v":1}',
    to_json(key), to_json(ref), replace(gen_random_uuid()::text, '-', ''), trim_scale(v.price_usd), made,
    trim_scale(v.retail_price_usd), v.serial, to_json(v.code::text), to_json(v.id::text),
    to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), encode(v.sealed_hash, 'hex'), v.last_sequence + 1);
  record_hash := sha256(convert_to(payload, 'UTF8'));
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
  VALUES (at, v.id, org, key, v.id || '-' || gen_random_uuid(), made, ref);
  INSERT INTO log_batches (id, leaves, hashes) VALUES (nextval('log_batch_ids'), 1, record_hash)
  RETURNING id << 12 INTO slot;
  INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, actor_connected_id,
                              previous_hash, record_hash, payload, log_slot)
  VALUES (at, v.last_sequence + 1, v.id, 'Sealed', 'voucher.instance.redeemed', key, v.sealed_hash, record_hash, payload,
          slot);
  UPDATE vouchers SET status = 'Redeemed', pickable = false, redeemed_at = at, last_sequence = v.last_sequence + 1,
                      sealed_sequence = v.last_sequence + 1, sealed_hash = record_hash
   WHERE id = v.id;
  RETURN made;
END;
$$;

-- Redeems with the next prepared call.
CREATE OR REPLACE FUNCTION bench_redeem_next() RETURNS text LANGUAGE sql AS $$
  SELECT bench_redeem(organization_id, key_id, code_key, external_ref)
    FROM bench_calls WHERE n = (SELECT nextval('bench_call_numbers'));
$$;
