-- name: select_open_faults
-- The faults that have not ended, and when the deployment began. At least one row, because it also has that time; its fault is null if there is none.
SELECT d.canon_preserved_since AS "deployedAt", f.began_at AS "beganAt", f.name, f.subject, f.page
  FROM deployment AS d LEFT JOIN faults AS f ON f.ended_at IS NULL
 WHERE d.singleton;

-- name: begin_faults(began_at[], names, subjects, pages, severities, whats)
-- Records faults. One that is open already, because another process has recorded it, keeps its begin. Like the others here, it waits for the disk of
-- this server alone: while a synchronous standby is away, that is the fault.
INSERT INTO faults (began_at, name, subject, page, severity, what)
SELECT b.began_at, b.name, b.subject, b.page, b.severity, b.what
  FROM unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       AS b (began_at, name, subject, page, severity, what)
 CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
 ORDER BY b.name, b.subject, b.page
    ON CONFLICT (name, subject, page) WHERE ended_at IS NULL DO NOTHING;

-- name: end_faults(names, subjects, pages)
-- Ends faults. The clock may have been set back since they began.
UPDATE faults AS f SET ended_at = greatest(f.began_at, clock_timestamp())
  FROM unnest($1::text[], $2::text[], $3::text[]) AS e (name, subject, page)
 CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
 WHERE f.name = e.name AND f.subject = e.subject AND f.page = e.page AND f.ended_at IS NULL;

-- name: delete_old_faults(days)
-- Deletes a few of the faults that ended long ago.
DELETE FROM faults AS f
 WHERE f.id IN (SELECT o.id FROM faults AS o CROSS JOIN set_config('synchronous_commit', 'local', true) AS c
                 WHERE o.ended_at < clock_timestamp() - make_interval(days => $1::int) ORDER BY o.ended_at LIMIT 100);
