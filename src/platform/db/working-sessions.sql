-- name: read_working_sessions
-- The number of workers' sessions that are running a statement or transaction. isVisible is false if this role may not
-- see their state.
SELECT (count(*) FILTER (WHERE a.state = 'active'))::int AS working, bool_and(a.state IS NOT NULL) IS NOT FALSE AS "isVisible"
  FROM pg_stat_activity AS a WHERE a.application_name LIKE 'worker (%' AND a.datname = current_database();

-- name: find_older_sessions(schema)
-- The sessions of API and worker processes that know fewer migrations than $1. Sessions of release 0.1.0 name no
-- schema. Every role may read the names of all sessions.
SELECT string_agg(format('pid %s of %s', a.pid, a.application_name), ', ' ORDER BY a.pid) AS sessions
  FROM pg_stat_activity AS a
 WHERE a.datname = current_database() AND a.application_name ~ '^(api|worker)( \(schema \d{1,6}\))?$'
   AND coalesce(substring(a.application_name FROM '\d+')::int, 0) < $1::int;
