-- name: find_published
-- The served checkpoint, and its age on the database's clock.
SELECT p.size, p.root, p.note, p.policy, (extract(epoch FROM clock_timestamp() - p.published_at) * 1000)::bigint AS "ageMs"
  FROM log_published AS p WHERE p.one;

-- name: find_log_progress
-- The size of the served checkpoint, and its lag in milliseconds. The lag is the checkpoint's age while leaves or
-- batches wait for the next checkpoint. Otherwise it is 0. No row before the first checkpoint.
SELECT p.size, CASE WHEN p.size < t.size OR EXISTS (SELECT 1 FROM log_batches AS b WHERE b.first_index IS NULL AND b.id BETWEEN 1 AND 2199023255551)
                    THEN (extract(epoch FROM clock_timestamp() - p.published_at) * 1000)::bigint ELSE 0 END AS "lagMs"
  FROM log_published AS p JOIN log_tree AS t ON t.one = p.one WHERE p.one;

-- name: publish_checkpoint(size, root, note, policy, origin)
-- Serves a checkpoint from now on. Returns no row if a larger checkpoint is served, or if the checkpoint's log was
-- retired. The lock waits for a retirement that has begun. A trigger rejects a different root for the same size.
INSERT INTO log_published (size, root, note, policy, published_at)
SELECT $1::bigint, $2::bytea, $3::text, $4::text, clock_timestamp() FROM log_tree AS t WHERE t.one AND t.origin = $5::text FOR KEY SHARE
    ON CONFLICT (one) DO UPDATE
   SET size = EXCLUDED.size, root = EXCLUDED.root, note = EXCLUDED.note, policy = EXCLUDED.policy, published_at = EXCLUDED.published_at
 WHERE log_published.size <= EXCLUDED.size;

-- name: select_witness_sizes(name)
-- For each witness, the size of the last tree that it is known to have cosigned.
SELECT w.name, w.size FROM log_witnesses AS w WHERE w.name = ANY ($1::text[]);

-- name: record_witness_sizes(name, size)
-- Records for each witness the size of the tree that it has cosigned.
INSERT INTO log_witnesses (name, size) SELECT w.name, w.size FROM unnest($1::text[], $2::bigint[]) AS w (name, size)
    ON CONFLICT (name) DO UPDATE SET size = EXCLUDED.size;
