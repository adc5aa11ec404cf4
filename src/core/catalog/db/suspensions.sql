-- name: suspend_batch(id, reason, follow_ms)
-- Suspends a batch, and so all its vouchers at once. Their histories follow; the sweeper continues them after follow_ms milliseconds. No change if
-- the batch is suspended already.
UPDATE batches AS b
   SET suspended_at = date_trunc('milliseconds', clock_timestamp()), suspension_reason = $2::text,
       suspension_due_at = date_trunc('milliseconds', clock_timestamp()) + $3::int * interval '1 millisecond'
 WHERE b.id = $1::text AND b.suspended_at IS NULL;

-- name: resume_batch(id, reason?, follow_ms)
-- Ends the suspension of a batch. Each voucher stays suspended until its history says that it was resumed. Follows as in suspend_batch.
UPDATE batches AS b
   SET suspended_at = NULL, suspension_reason = $2::text,
       suspension_due_at = date_trunc('milliseconds', clock_timestamp()) + $3::int * interval '1 millisecond'
 WHERE b.id = $1::text AND b.suspended_at IS NOT NULL;

-- name: is_batch_suspended(batch_id)
-- Whether a batch is suspended.
SELECT b.suspended_at IS NOT NULL AS suspended FROM batches AS b WHERE b.id = $1::text;

-- name: select_due_suspensions(limit)
-- Batches whose histories the sweeper continues.
SELECT b.id AS "batchId", b.suspension_due_at AS "dueAt" FROM batches AS b
 WHERE b.suspension_due_at <= (SELECT clock_timestamp()) ORDER BY b.suspension_due_at LIMIT $1::int;

-- name: lock_suspension(batch_id)
-- Whether a batch is suspended. Locks its row until the transaction ends. No row if another transaction has locked it.
SELECT b.suspended_at AS "suspendedAt" FROM batches AS b WHERE b.id = $1::text FOR NO KEY UPDATE SKIP LOCKED;

-- name: end_suspension_walk(batch_id, due_at)
-- All histories of a batch follow. No change if the batch was suspended or resumed again since due_at was read.
UPDATE batches AS b SET suspension_due_at = NULL WHERE b.id = $1::text AND b.suspension_due_at = $2::timestamptz;

-- name: read_suspension_reason(voucher_id)
-- Why the batch of a voucher was suspended or resumed last.
SELECT b.suspension_reason AS reason FROM vouchers AS v JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id]) WHERE v.id = $1::text;
