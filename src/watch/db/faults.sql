-- name: select_faults
-- All faults: open ones, and ended ones until they are deleted.
SELECT f.kind, f.subject, f.page, f.severity, f.what, f.since, f.ended_at AS "endedAt", f.told, f.failing_since AS "failingSince" FROM faults AS f;

-- name: begin_faults(kind, subject, page, severity, what, since, told?)
-- Records the faults of one search. A fault that is already recorded keeps its beginning until its end was reported.
-- All statements of this file wait only for the disk of this server, not for standbys, because a missing synchronous
-- standby is itself a fault.
INSERT INTO faults AS f (kind, subject, page, severity, what, since, told)
SELECT b.kind, b.subject, b.page, b.severity, b.what, b.since, b.told
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::text[])
       AS b (kind, subject, page, severity, what, since, told)
 CROSS JOIN set_config('synchronous_commit', 'local', true)
 ORDER BY b.kind, b.subject, b.page
    ON CONFLICT (kind, subject, page)
    DO UPDATE SET severity = excluded.severity, what = excluded.what, ended_at = NULL,
                  since = CASE WHEN f.told = 'end' THEN excluded.since ELSE f.since END,
                  told = CASE WHEN f.told = 'end' THEN excluded.told ELSE coalesce(f.told, excluded.told) END;

-- name: end_faults(kind, subject, page)
-- Records that a search did not find these faults again.
UPDATE faults AS f SET ended_at = clock_timestamp()
  FROM unnest($1::text[], $2::text[], $3::text[]) AS e (kind, subject, page)
 CROSS JOIN set_config('synchronous_commit', 'local', true)
 WHERE f.kind = e.kind AND f.subject = e.subject AND f.page = e.page AND f.ended_at IS NULL;

-- name: take_untold(seconds)
-- Takes the messages that are due, so that no other process sends them. A message is due when a red fault has begun,
-- and when it has been gone for some time. Each message is tried at most once in the given number of seconds. A message
-- is not delayed if the clock was set back.
UPDATE faults AS f SET tried_at = clock_timestamp()
  FROM (SELECT o.id FROM faults AS o
         WHERE abs(extract(epoch FROM clock_timestamp() - o.tried_at)) > $1::integer IS NOT FALSE
           AND CASE WHEN o.ended_at IS NULL THEN o.severity = 'red' AND o.told IS NULL
                    ELSE abs(extract(epoch FROM clock_timestamp() - o.ended_at)) > $1::integer
                         AND (o.told = 'begin' OR o.told IS NULL AND o.severity = 'red') END
         ORDER BY o.id LIMIT 20 FOR UPDATE SKIP LOCKED) AS due
 CROSS JOIN set_config('synchronous_commit', 'local', true)
 WHERE f.id = due.id
RETURNING f.id, f.severity, f.what, f.subject, f.since, f.ended_at AS "endedAt";

-- name: record_told(id, told)
UPDATE faults AS f SET told = $2::text, tried_at = NULL, failing_since = NULL FROM set_config('synchronous_commit', 'local', true)
 WHERE f.id = $1::bigint;

-- name: record_refused(id)
UPDATE faults AS f SET failing_since = coalesce(f.failing_since, clock_timestamp()) FROM set_config('synchronous_commit', 'local', true)
 WHERE f.id = $1::bigint;

-- name: forget_faults(seconds, is_telling)
-- Deletes faults that have been gone for some time, after a message has reported their end. If no message can be sent,
-- a fault is deleted after a day.
DELETE FROM faults AS f USING set_config('synchronous_commit', 'local', true)
 WHERE abs(extract(epoch FROM clock_timestamp() - f.ended_at)) > $1::integer
   AND (f.told = 'end' OR f.told IS NULL AND (f.severity <> 'red' OR NOT $2::boolean) OR f.ended_at < clock_timestamp() - interval '1 day');
