-- The sealed chain of each voucher. Append-only; the one change that a row may see is its sealing.

CREATE TABLE voucher_events (
  occurred_at timestamptz NOT NULL,
  sequence integer NOT NULL CHECK (sequence > 0),
  actor_is_employee boolean,
  voucher_id text COLLATE "C" NOT NULL REFERENCES vouchers,
  seal_status text COLLATE "C" NOT NULL CHECK (seal_status IN ('Pending', 'Sealed')),
  event_type text COLLATE "C" NOT NULL CHECK (event_type LIKE 'voucher.instance.%'),
  actor_connected_id text COLLATE "C",
  previous_hash bytea CHECK (octet_length(previous_hash) = 32),
  record_hash bytea,
  -- What a Pending event will say once it is sealed. NULL for events that were born sealed.
  data json,
  -- The exact characters that were hashed. text, not jsonb: jsonb would reorder them.
  payload text,
  PRIMARY KEY (voucher_id, sequence),
  -- A record has at most one successor: a chain cannot fork.
  CONSTRAINT voucher_events_no_fork UNIQUE (voucher_id, previous_hash),
  CONSTRAINT sealed_events_are_complete CHECK (
    num_nonnulls(previous_hash, record_hash, payload) = CASE seal_status WHEN 'Sealed' THEN 3 ELSE 0 END
  ),
  CONSTRAINT pending_events_keep_their_data CHECK (seal_status = 'Sealed' OR data IS NOT NULL),
  -- What is kept is what was hashed: about 2 microseconds a row.
  CONSTRAINT record_hash_is_of_payload CHECK (record_hash = sha256(convert_to(payload, 'UTF8')))
);

CREATE FUNCTION allow_sealing_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.seal_status = 'Pending' AND NEW.seal_status = 'Sealed'
     AND (OLD.occurred_at, OLD.sequence, OLD.voucher_id, OLD.event_type) = (NEW.occurred_at, NEW.sequence, NEW.voucher_id, NEW.event_type)
     AND OLD.actor_is_employee IS NOT DISTINCT FROM NEW.actor_is_employee
     AND OLD.actor_connected_id IS NOT DISTINCT FROM NEW.actor_connected_id
     AND OLD.data::text IS NOT DISTINCT FROM NEW.data::text
  THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'UPDATE on voucher_events is refused: an event changes once, when it is sealed' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER voucher_events_change_by_sealing BEFORE UPDATE ON voucher_events
  FOR EACH ROW EXECUTE FUNCTION allow_sealing_only();

CREATE TRIGGER voucher_events_stay BEFORE DELETE OR TRUNCATE ON voucher_events
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change('events are kept for ever');
