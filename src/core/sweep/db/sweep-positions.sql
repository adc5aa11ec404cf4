-- name: find_sweep_position(task)
-- The position at which a resumable sweeper task stopped, and how long ago that was in milliseconds.
SELECT p.position, (extract(epoch FROM clock_timestamp() - p.moved_at) * 1000)::bigint AS "ageMs"
  FROM sweep_positions AS p WHERE p.task = $1::text;

-- name: move_sweep_position(task, position)
-- Saves where a resumable sweeper task stopped.
INSERT INTO sweep_positions (moved_at, task, position) VALUES (clock_timestamp(), $1::text, $2::text)
    ON CONFLICT (task) DO UPDATE SET moved_at = excluded.moved_at, position = excluded.position;
