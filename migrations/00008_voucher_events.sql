-- The sealed event chain of each voucher. Append-only, except that a Pending event is sealed once.

CREATE TABLE voucher_events (
  occurred_at timestamptz NOT NULL,
  -- The id of the event's leaf batch × 4096 + its place in it, from which log_index_of computes its leaf. NULL: not in the log yet.
  log_slot bigint,
  sequence integer NOT NULL CHECK (sequence > 0),
  actor_is_employee boolean,
  voucher_id text COLLATE "C" NOT NULL REFERENCES vouchers,
  seal_status text COLLATE "C" NOT NULL CHECK (seal_status IN ('Pending', 'Sealed')),
  event_type text COLLATE "C" NOT NULL CHECK (event_type LIKE 'voucher.instance.%'),
  actor_connected_id text COLLATE "C",
  previous_hash bytea CHECK (octet_length(previous_hash) = 32),
  record_hash bytea,
  data json, -- The content of a Pending event, from which its payload is made. NULL for events that were inserted as Sealed.
  payload text, -- The exact characters that were hashed. text, not jsonb: jsonb would reorder the keys.
  PRIMARY KEY (voucher_id, sequence),
  -- A record has at most one successor, so a chain cannot fork.
  CONSTRAINT voucher_events_no_fork UNIQUE (voucher_id, previous_hash),
  CONSTRAINT voucher_events_sealed_complete CHECK (
    num_nonnulls(previous_hash, record_hash, payload) = CASE seal_status WHEN 'Sealed' THEN 3 ELSE 0 END
  ),
  CONSTRAINT voucher_events_pending_has_data CHECK (seal_status = 'Sealed' OR data IS NOT NULL),
  -- Costs about 2 microseconds a row.
  CONSTRAINT voucher_events_hash_matches_payload CHECK (record_hash = sha256(convert_to(payload, 'UTF8')))
);

-- A voucher expires once. A redemption writes another event type and does not touch this index.
CREATE UNIQUE INDEX voucher_events_one_expiry ON voucher_events (voucher_id) WHERE event_type = 'voucher.instance.expired';

-- Finds events that are not sealed yet. Almost always empty.
CREATE INDEX voucher_events_pending ON voucher_events (occurred_at) WHERE seal_status = 'Pending';

-- A Pending event is sealed once. `log_slot` is set with it, or once for an event that was sealed before there was a log.
CREATE TRIGGER voucher_events_sealing_only BEFORE UPDATE ON voucher_events FOR EACH ROW
  WHEN (((OLD.occurred_at, OLD.sequence, OLD.voucher_id, OLD.event_type) = (NEW.occurred_at, NEW.sequence, NEW.voucher_id, NEW.event_type)
         AND OLD.actor_is_employee IS NOT DISTINCT FROM NEW.actor_is_employee
         AND OLD.actor_connected_id IS NOT DISTINCT FROM NEW.actor_connected_id
         AND OLD.data::text IS NOT DISTINCT FROM NEW.data::text
         AND (OLD.seal_status = 'Pending' AND NEW.seal_status = 'Sealed'
              OR (OLD.seal_status, OLD.previous_hash, OLD.record_hash, OLD.payload) = (NEW.seal_status, NEW.previous_hash, NEW.record_hash, NEW.payload)
                 AND OLD.log_slot IS NULL AND NEW.log_slot IS NOT NULL)) IS NOT TRUE)
  EXECUTE FUNCTION reject_change('an event changes only once, when it is sealed');
CREATE TRIGGER voucher_events_permanent BEFORE DELETE OR TRUNCATE ON voucher_events
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('events are permanent');
