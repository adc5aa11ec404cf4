-- name: read_working_sessions
-- How many sessions of workers Postgres works for, or flushes for. Not visible to a role that may not see the state of theirs.
SELECT (count(*) FILTER (WHERE a.state = 'active'))::int AS working, bool_and(a.state IS NOT NULL) IS NOT FALSE AS "isVisible"
  FROM pg_stat_activity AS a WHERE a.application_name = 'worker' AND a.datname = current_database();
