-- name: lock_log_tree
-- Locks the tree for a transaction that gives batches their positions. No row if another transaction has locked it, or
-- if there is no log.
SELECT t.origin, t.size, t.root, pg_postmaster_start_time()::text AS server FROM log_tree AS t WHERE t.one FOR NO KEY UPDATE SKIP LOCKED;

-- name: find_log_tree
-- The stored tree, and the start time of its server. The time changes when the server restarts or another server takes
-- its place, for example after a restore.
SELECT t.origin, t.size, t.root, pg_postmaster_start_time()::text AS server FROM log_tree AS t WHERE t.one;

-- name: insert_log_tree(origin, root)
-- Begins the log with an empty tree.
INSERT INTO log_tree (origin, size, root) VALUES ($1::text, 0, $2::bytea);

-- name: select_waiting_batches(batches_max, leaves_max, after)
-- The next batches without a position, in id order. Together they have at most as many leaves as the second limit.
-- Skips batches that are set aside (see select_batches_set_aside).
SELECT w.id, w.leaves, w.hashes
  FROM (SELECT b.id, b.leaves, b.hashes, sum(b.leaves) OVER (ORDER BY b.id) AS leaves_so_far
          FROM (SELECT n.id, n.leaves, n.hashes FROM log_batches AS n WHERE n.first_index IS NULL AND n.id > $3::bigint
                   AND n.id <= 2199023255551
                 ORDER BY n.id LIMIT $1::int) AS b
       ) AS w
 WHERE w.leaves_so_far <= $2::int ORDER BY w.id;

-- name: place_log_batches(id, first_index)
-- Gives waiting batches their positions. Raises VS001 when a batch already has a position.
WITH placed AS (
  UPDATE log_batches AS b SET first_index = w.first_index, hashes = NULL
    FROM unnest($1::bigint[], $2::bigint[]) AS w (id, first_index)
   WHERE b.id = ANY (ARRAY[w.id]) AND (b.first_index IS NULL) IS NOT FALSE
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::bigint[]), 'waiting batches of the log') FROM placed;

-- name: place_scattered_batch(id, places)
-- Gives each leaf of a waiting batch its own position. Raises VS001 when the batch already has positions.
WITH placed AS (
  UPDATE log_batches AS b SET first_index = ($2::bigint[])[1], places = $2::bigint[], hashes = NULL
   WHERE b.id = $1::bigint AND (b.first_index IS NULL) IS NOT FALSE
  RETURNING 1
)
SELECT assert_row_count(count(*), 1, 'waiting batches of the log') FROM placed;

-- name: select_batches_set_aside(limit)
-- The ids of waiting batches that never get a position. A log_slot in voucher_events cannot contain such an id, so no
-- event's leaf is in such a batch, and no chain needs it. The sequence of ids did not assign these ids.
SELECT b.id::text AS id FROM log_batches AS b WHERE b.first_index IS NULL AND b.id > 2199023255551
 UNION ALL
SELECT b.id::text FROM log_batches AS b WHERE b.first_index IS NULL AND b.id < 1 LIMIT $1::int;

-- name: count_waiting_leaves
-- The number of leaves that wait for their positions.
SELECT coalesce(sum(b.leaves), 0)::bigint AS leaves FROM log_batches AS b WHERE b.first_index IS NULL;

-- name: write_log_bundles(index, hashes)
-- Inserts bundles, or appends to them. A trigger rejects changes of entries that a bundle already has.
INSERT INTO log_bundles (index, entries) SELECT w.index, w.entries FROM unnest($1::bigint[], $2::bytea[]) AS w (index, entries)
    ON CONFLICT (index) DO UPDATE SET entries = EXCLUDED.entries;

-- name: write_log_tiles(level, index, hashes)
-- Inserts tiles of level 1 and above, or appends to them. A trigger rejects changes of hashes that a tile already has.
INSERT INTO log_tiles (level, index, hashes)
SELECT w.level, w.index, w.hashes FROM unnest($1::smallint[], $2::bigint[], $3::bytea[]) AS w (level, index, hashes)
    ON CONFLICT (level, index) DO UPDATE SET hashes = EXCLUDED.hashes;

-- name: advance_log_tree(size_before, size, root)
-- Writes the size and root of the locked tree. Raises VS001 when its size has changed since it was read.
WITH advanced AS (
  UPDATE log_tree AS t SET size = $2::bigint, root = $3::bytea WHERE t.one AND t.size = $1::bigint RETURNING 1
)
SELECT assert_row_count(count(*), 1, 'unchanged trees') FROM advanced;

-- name: select_log_tiles(level, index)
-- The stored bundles (level 0: the data of leaves) and tiles, full or partial. A bundle or tile that is not stored has
-- null hashes.
SELECT w.level, w.index, coalesce(
         (SELECT b.entries FROM log_bundles AS b WHERE b.index = w.index AND w.level = 0),
         (SELECT t.hashes FROM log_tiles AS t WHERE t.level = w.level AND t.index = w.index)) AS hashes
  FROM unnest($1::smallint[], $2::bigint[]) AS w (level, index);

-- name: select_lost_leaves
-- The leaves without events. A recovery restored them after this database had lost their events.
SELECT l.first_index AS "firstIndex", l.leaves FROM log_lost AS l ORDER BY l.first_index;

-- name: insert_lost_leaves(first_index, leaves)
-- Records leaves whose events this database has lost.
INSERT INTO log_lost (first_index, leaves, noted_at) VALUES ($1::bigint, $2::bigint, clock_timestamp());
