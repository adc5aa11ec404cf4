-- Finds the ended reservations of a voucher, for its history. The Live one is in reservations_one_live. So opening a reservation writes
-- nothing to this index, and no search for Live rows can use it.
CREATE INDEX reservations_ended ON reservations (voucher_id, started_at) WHERE state <> 'Live';
