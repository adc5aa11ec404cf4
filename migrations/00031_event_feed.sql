-- The order of the feed of events: the ids of leaf batches, which transactions draw while they hold the locks of their
-- vouchers. A transaction with a smaller id may commit later, so the feed ends at an id below which none is open.

-- One row, which all processes share, so that no caller sees the feed go back.
CREATE TABLE event_feed (
  singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- No transaction that has drawn this id or an earlier one is open.
  final_id bigint NOT NULL DEFAULT 0,
  -- Every event that happened before this time is sealed under such an id.
  complete_until timestamptz NOT NULL DEFAULT 'epoch'
    CONSTRAINT event_feed_in_milliseconds CHECK (complete_until = date_trunc('milliseconds', complete_until)),
  -- What the next step makes final: the last id and the time when it was read, and the transactions that were open then.
  next_id bigint NOT NULL DEFAULT 0,
  next_complete_until timestamptz NOT NULL DEFAULT 'epoch',
  next_at timestamptz NOT NULL DEFAULT 'epoch',
  writers text[] NOT NULL DEFAULT '{}',
  CONSTRAINT event_feed_next_later CHECK (next_id >= final_id AND next_complete_until >= complete_until)
);
INSERT INTO event_feed DEFAULT VALUES;
CREATE TRIGGER event_feed_forward BEFORE UPDATE ON event_feed FOR EACH ROW
  WHEN (NEW.final_id < OLD.final_id OR NEW.complete_until < OLD.complete_until)
  EXECUTE FUNCTION reject_change('the feed only grows');
CREATE TRIGGER event_feed_permanent BEFORE DELETE OR TRUNCATE ON event_feed
  FOR EACH STATEMENT EXECUTE FUNCTION reject_change('the row is permanent');

-- The open transactions of this database that may have drawn an id, or chosen the time of an event. To draw an id locks
-- the sequence until the transaction ends. The time of an event is read after its voucher, or its new batch, was locked.
-- A transaction changes its name when it is prepared, so all prepared ones have the same name.
CREATE FUNCTION event_writers() RETURNS text[] LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(array_agg(DISTINCT CASE WHEN l.virtualtransaction LIKE '-1/%' THEN 'prepared' ELSE l.virtualtransaction END), '{}')
    FROM pg_locks AS l
   WHERE l.locktype = 'relation' AND l.mode IN ('RowShareLock', 'RowExclusiveLock')
     AND l.relation IN ('vouchers'::regclass, 'batches'::regclass, 'log_batch_ids'::regclass)
     AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
$$;

-- Moves the end of the feed forward. Each statement of the function sees what was committed before it, and their order
-- matters: a transaction that is not among the writers draws a later id, and chooses a later time. The second turn
-- makes the newest id final at once if nothing writes. Does nothing while another process moves the feed.
CREATE FUNCTION move_event_feed(latest timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  f event_feed;
BEGIN
  SELECT * INTO f FROM event_feed AS o WHERE o.singleton FOR NO KEY UPDATE SKIP LOCKED;
  FOR turn IN 1..2 LOOP
    EXIT WHEN f IS NULL OR event_writers() && (ARRAY['prepared'] || f.writers);
    f.final_id := f.next_id;
    f.complete_until := f.next_complete_until;
    -- Events from before `next_at` are committed. Those that are still Pending will be sealed under later ids.
    SELECT greatest(f.complete_until, date_trunc('milliseconds', least(f.next_at, min(e.occurred_at))))
      INTO f.next_complete_until FROM voucher_events AS e WHERE e.seal_status = 'Pending';
    SELECT greatest(f.next_id, s.last_value), least(clock_timestamp(), latest) - interval '2 seconds'
      INTO f.next_id, f.next_at FROM log_batch_ids AS s;
    f.writers := event_writers();
  END LOOP;
  UPDATE event_feed AS o
     SET final_id = f.final_id, complete_until = f.complete_until, next_id = f.next_id,
         next_complete_until = f.next_complete_until, next_at = f.next_at, writers = f.writers
   WHERE o.singleton AND o.next_at IS DISTINCT FROM f.next_at AND f IS NOT NULL;
END
$$;
