-- Holds. The ticket is the id. A row leaves Live once and then never changes again.

CREATE TABLE reservations (
  started_at timestamptz NOT NULL,
  -- Live past this moment is no longer live, whether or not a job has recorded it.
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  ticket text COLLATE "C" NOT NULL PRIMARY KEY,
  voucher_id text COLLATE "C" NOT NULL REFERENCES vouchers,
  organization_id text COLLATE "C" NOT NULL,
  -- The holder.
  key_id text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL CHECK (state IN ('Live', 'Consumed', 'Released', 'Expired')),
  -- Which of the configured secrets signed this hold's token: the first 8 hex digits of its SHA-256.
  token_secret_id text COLLATE "C" NOT NULL,
  end_reason text CHECK (length(end_reason) <= 200),
  CONSTRAINT holds_have_a_length CHECK (expires_at > started_at),
  CONSTRAINT ended_holds_say_when CHECK ((state = 'Live') = (ended_at IS NULL))
);

-- One live hold per voucher, and the way from a voucher to its hold. Small: it holds live rows only.
CREATE UNIQUE INDEX reservations_one_live ON reservations (voucher_id) WHERE state = 'Live';

-- The way to the holds whose time is over.
CREATE INDEX reservations_live_by_end ON reservations (expires_at) WHERE state = 'Live';

CREATE TRIGGER ended_hold_is_final BEFORE UPDATE ON reservations
  FOR EACH ROW WHEN (OLD.state <> 'Live')
  EXECUTE FUNCTION refuse_change('an ended hold stays what it is');
