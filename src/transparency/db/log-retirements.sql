-- name: select_log_retirements
-- The retired logs, oldest first.
SELECT r.origin, r.next_origin AS "nextOrigin", r.size, r.last_note AS "lastNote", r.served_note AS "servedNote", r.policy, r.reason,
       r.retired_at AS "retiredAt"
  FROM log_retirements AS r ORDER BY r.size;

-- name: lock_log_to_retire
-- Locks the tree against all other uses, including the publication of a checkpoint. No row if it is in use, or if there
-- is no log.
SELECT t.origin, t.size, t.root, pg_postmaster_start_time()::text AS server FROM log_tree AS t WHERE t.one FOR UPDATE SKIP LOCKED;

-- name: insert_log_retirement(origin, next_origin, size, root, last_note, served_note, policy, reason)
-- Records the end of the locked log.
INSERT INTO log_retirements (origin, next_origin, size, root, last_note, served_note, policy, reason, retired_at)
VALUES ($1::text, $2::text, $3::bigint, $4::bytea, $5::text, $6::text, $7::text, $8::text, clock_timestamp());

-- name: rename_log_tree(origin, next_origin)
-- Gives the locked tree the origin of the next log. A trigger rejects this unless the retirement is recorded. Raises
-- VS001 if the tree's origin is not that of the retired log.
WITH renamed AS (
  UPDATE log_tree AS t SET origin = $2::text WHERE t.one AND t.origin = $1::text RETURNING 1
)
SELECT assert_row_count(count(*), 1, 'logs of this name') FROM renamed;

-- name: delete_published_of_retired
-- Stops serving the retired log's checkpoint. A trigger rejects this unless the retirement is recorded.
DELETE FROM log_published AS p WHERE p.one;

-- name: delete_witness_sizes
-- Deletes the sizes that witnesses have cosigned, because no witness has cosigned the next log.
DELETE FROM log_witnesses;
