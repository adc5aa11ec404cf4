-- Redemptions, one row each, never changed. The three unique keys make sure that a redemption happens once.

CREATE TABLE redemptions (
  redeemed_at timestamptz NOT NULL,
  -- One redemption per voucher.
  voucher_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES vouchers,
  organization_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  -- The queue job that redeemed the voucher, so that a job that is delivered twice recognizes its own work.
  attempt_id text COLLATE "C" NOT NULL,
  -- The reservation that the redemption consumed, if there was one.
  ticket text COLLATE "C" REFERENCES reservations,
  redeem_code text COLLATE "C" NOT NULL,
  external_ref text COLLATE "C" NOT NULL CHECK (length(external_ref) BETWEEN 1 AND 128),
  -- A partner's order reference redeems one voucher, once.
  CONSTRAINT redemptions_external_ref UNIQUE (organization_id, external_ref)
);

-- Unique within an organization. An expression, so that no plan looks up a reference through it.
CREATE UNIQUE INDEX redemptions_redeem_code ON redemptions ((redeem_code || ' ' || organization_id));

CREATE TRIGGER redemptions_immutable BEFORE UPDATE OR DELETE ON redemptions
  FOR EACH ROW EXECUTE FUNCTION reject_change('a redemption is final');
CREATE TRIGGER redemptions_no_truncate BEFORE TRUNCATE ON redemptions
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('a redemption is final');
