-- What the sweeper needs to find its work without searching, and to remember how far it got.

-- Serial up to which every voucher of an expired batch has its history's last event. The sweeper walks a batch once, in order.
ALTER TABLE batches
  ADD COLUMN expiry_recorded_to integer NOT NULL DEFAULT 0,
  ADD CONSTRAINT batch_expiry_is_within CHECK (expiry_recorded_to BETWEEN 0 AND voucher_count);

-- The way to batches whose time is over and not yet recorded. Holds no batch that is done.
CREATE INDEX batches_by_end ON batches (valid_until) WHERE expiry_recorded_to < voucher_count;

-- A voucher expires once. Burns write other events and pay nothing for it.
CREATE UNIQUE INDEX voucher_events_one_expiry ON voucher_events (voucher_id) WHERE event_type = 'voucher.instance.expired';

-- The way to events that wait for their seal. Almost always empty.
CREATE INDEX voucher_events_pending ON voucher_events (occurred_at) WHERE seal_status = 'Pending';

-- How far the rolling tasks are. Written by whichever sweeper did the last pass; losing a row costs one round.
CREATE TABLE sweep_positions (
  moved_at timestamptz NOT NULL,
  task text COLLATE "C" PRIMARY KEY,
  position text COLLATE "C" NOT NULL
);
