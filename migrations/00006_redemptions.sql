-- Burns, one row each, never changed. These three keys are what makes a burn happen once.

CREATE TABLE redemptions (
  redeemed_at timestamptz NOT NULL,
  -- One redemption per voucher.
  voucher_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES vouchers,
  organization_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL,
  -- The queue job that burnt it: a job delivered twice recognises its own work.
  attempt_id text COLLATE "C" NOT NULL,
  -- The hold that the burn consumed, if there was one.
  ticket text COLLATE "C" REFERENCES reservations,
  redeem_code text COLLATE "C" NOT NULL,
  external_ref text COLLATE "C" NOT NULL CHECK (length(external_ref) BETWEEN 1 AND 128),
  -- The partner's order reference burns one voucher, ever.
  CONSTRAINT redemptions_external_ref UNIQUE (organization_id, external_ref),
  CONSTRAINT redemptions_redeem_code UNIQUE (organization_id, redeem_code)
);

CREATE TRIGGER redemptions_are_final BEFORE UPDATE OR DELETE OR TRUNCATE ON redemptions
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('a redemption is never undone');
