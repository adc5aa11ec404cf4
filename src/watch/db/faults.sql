-- name: select_open_faults(seconds)
-- The faults that have not ended, when the deployment began, and whether a process that can serve requests has looked
-- in the last seconds. Returns at least one row, whose fault is null if there is none.
SELECT d.canon_preserved_since AS "deployedAt",
       abs(extract(epoch FROM clock_timestamp() - l.looked_at)) < $1::int AS "isLookedFor",
       f.began_at AS "beganAt", f.name, f.subject, f.page, f.severity, f.what
  FROM deployment AS d JOIN last_look AS l ON l.singleton LEFT JOIN faults AS f ON f.ended_at IS NULL
 WHERE d.singleton;

-- name: note_look
-- Records that a process that can serve requests looks for faults, for processes that cannot see it in Redis.
UPDATE last_look AS l SET looked_at = clock_timestamp()
  FROM set_config('synchronous_commit', 'local', true) AS c
 WHERE l.singleton;

-- name: begin_faults(began_at, name, subject, page, severity, what)
-- Records faults, or updates the description of open ones. An open fault keeps its beginning. These statements wait
-- only for the disk of this server, because a missing synchronous standby is itself a fault.
INSERT INTO faults AS f (began_at, name, subject, page, severity, what)
SELECT b.began_at, b.name, b.subject, b.page, b.severity, b.what
  FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       AS b (began_at, name, subject, page, severity, what)
 CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
 ORDER BY b.name, b.subject, b.page
    ON CONFLICT (name, subject, page) WHERE ended_at IS NULL
    DO UPDATE SET severity = excluded.severity, what = excluded.what
        WHERE (f.severity, f.what) IS DISTINCT FROM (excluded.severity, excluded.what);

-- name: end_faults(name, subject, page)
-- Ends faults. No fault ends before its beginning, even if the clock was set back since.
UPDATE faults AS f SET ended_at = greatest(f.began_at, clock_timestamp())
  FROM unnest($1::text[], $2::text[], $3::text[]) AS e (name, subject, page)
 CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
 WHERE f.name = e.name AND f.subject = e.subject AND f.page = e.page AND f.ended_at IS NULL;

-- name: delete_old_faults(days)
-- Deletes a few of the faults that ended long ago.
DELETE FROM faults AS f
 WHERE f.id IN (SELECT o.id FROM faults AS o CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
                 WHERE o.ended_at < clock_timestamp() - make_interval(days => $1::int) ORDER BY o.ended_at LIMIT 100);
