-- Reservations. The ticket is the id. A row leaves Live once and never changes again.

CREATE TABLE reservations (
  started_at timestamptz NOT NULL,
  -- From this moment on the reservation is no longer live, whether or not the sweeper has recorded its end.
  expires_at timestamptz NOT NULL,
  ended_at timestamptz,
  ticket text COLLATE "C" NOT NULL PRIMARY KEY,
  voucher_id text COLLATE "C" NOT NULL REFERENCES vouchers,
  organization_id text COLLATE "C" NOT NULL,
  key_id text COLLATE "C" NOT NULL, -- The API key that made the reservation.
  state text COLLATE "C" NOT NULL CHECK (state IN ('Live', 'Consumed', 'Released', 'Expired')),
  -- Which of the configured secrets signed the token: the first 8 hex digits of the secret's SHA-256.
  token_secret_id text COLLATE "C" NOT NULL,
  end_reason text CHECK (length(end_reason) <= 200),
  CONSTRAINT reservations_expire_after_start CHECK (expires_at > started_at),
  CONSTRAINT reservations_ended_at_unless_live CHECK ((state = 'Live') = (ended_at IS NULL))
);

-- One live reservation per voucher. Also finds the reservation of a voucher. Small: it has live rows only.
CREATE UNIQUE INDEX reservations_one_live ON reservations (voucher_id) WHERE state = 'Live';

-- Finds reservations by their end. Its predicate differs from that of reservations_one_live so that no statement can use both.
CREATE INDEX reservations_live_by_end ON reservations (expires_at) WHERE ended_at IS NULL;

-- Finds the ended reservations of a voucher, for its history. The Live one is in reservations_one_live. So opening a reservation writes nothing to
-- this index, and no search for Live rows can use it.
CREATE INDEX reservations_ended ON reservations (voucher_id, started_at) WHERE state <> 'Live';
CREATE TRIGGER reservations_ended_final BEFORE UPDATE ON reservations
  FOR EACH ROW WHEN (OLD.state <> 'Live') EXECUTE FUNCTION reject_change('an ended reservation is final');
