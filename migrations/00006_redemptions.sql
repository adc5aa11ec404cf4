-- Redemptions, one row each, never changed. The three unique keys make sure that a redemption happens once.

CREATE TABLE redemptions (
  -- In milliseconds, like the cursor of the list of redemptions.
  redeemed_at timestamptz NOT NULL CONSTRAINT redemptions_in_milliseconds CHECK (redeemed_at = date_trunc('milliseconds', redeemed_at)),
  voucher_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES vouchers, -- One redemption per voucher.
  organization_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  -- The queue job that redeemed the voucher, so that a job that is delivered twice recognizes its own work.
  attempt_id text COLLATE "C" NOT NULL,
  ticket text COLLATE "C" REFERENCES reservations, -- The reservation that the redemption consumed, if there was one.
  redeem_code text COLLATE "C" NOT NULL,
  external_ref text COLLATE "C" NOT NULL CHECK (length(external_ref) BETWEEN 1 AND 128),
  -- A partner's order reference redeems one voucher, once.
  CONSTRAINT redemptions_external_ref UNIQUE (organization_id, external_ref)
);

-- Unique within an organization. An expression, so that no plan looks up a reference through it.
CREATE UNIQUE INDEX redemptions_redeem_code ON redemptions ((redeem_code || ' ' || organization_id));

-- An organization's redemptions in the order of the list that partners read. The organization is an expression, so that no plan looks up a reference
-- through this index.
CREATE INDEX redemptions_by_time ON redemptions ((organization_id || ''), redeemed_at, voucher_id);
CREATE TRIGGER redemptions_permanent BEFORE UPDATE OR DELETE OR TRUNCATE ON redemptions
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a redemption is final');

-- The time before which the redemptions are final. After `closed_until` is committed, no transaction can insert an earlier redemption.
CREATE TABLE redemptions_closed (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Every redemption before this time is committed, or its open transaction holds the advisory lock for its time.
  closed_until timestamptz NOT NULL CHECK (closed_until = date_trunc('milliseconds', closed_until)),
  -- When an operator said that the database's clock is right. Processes that saw it jump ahead follow it again from then on.
  clock_trusted_at timestamptz
);

INSERT INTO redemptions_closed (closed_until) VALUES ('epoch');

-- The time moves forward only, and never past the clock. When an operator has said that the clock is right, a time that a wrong clock has put into
-- the future moves back to the present.
CREATE TRIGGER redemptions_closed_forward BEFORE UPDATE ON redemptions_closed FOR EACH ROW
  WHEN (NEW.closed_until > clock_timestamp()
        OR (NEW.closed_until < OLD.closed_until
            AND NOT (NEW.clock_trusted_at IS DISTINCT FROM OLD.clock_trusted_at AND OLD.closed_until > clock_timestamp())))
  EXECUTE FUNCTION reject_change('the time moves forward, up to the present');
CREATE TRIGGER redemptions_closed_permanent BEFORE DELETE OR TRUNCATE ON redemptions_closed
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');

-- Refuses redemptions in the closed time. The advisory lock comes first. If a reader closes this time after the check below, it sees the lock in
-- pg_locks until this transaction ends, even if it is a prepared transaction. The key has 21092 in its upper 16 bits and the time, in milliseconds
-- since 1970, in the others (find_complete_until reads it). The check needs a snapshot that is newer than the lock, which only READ COMMITTED gives.
-- On VS001, the worker decides the batch again with a later time.
CREATE FUNCTION check_redemption_times() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz := (SELECT min(i.redeemed_at) FROM inserted AS i);
BEGIN
  IF earliest IS NULL THEN
    RETURN NULL;
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'INSERT on redemptions is not allowed: the transaction must be READ COMMITTED' USING ERRCODE = 'restrict_violation';
  END IF;
  PERFORM pg_advisory_xact_lock_shared((21092::bigint << 48) + (extract(epoch FROM earliest) * 1000)::bigint);
  IF (SELECT earliest >= c.closed_until FROM public.redemptions_closed AS c WHERE c.singleton) IS NOT TRUE THEN
    RAISE EXCEPTION 'a redemption at % is earlier than closed_until', earliest USING ERRCODE = 'VS001';
  END IF;
  RETURN NULL;
END
$$;
CREATE TRIGGER redemptions_in_open_time AFTER INSERT ON redemptions REFERENCING NEW TABLE AS inserted
  FOR EACH STATEMENT EXECUTE FUNCTION check_redemption_times();
