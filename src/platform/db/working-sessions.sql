-- name: read_working_sessions
-- The number of workers' sessions with running work. isVisible is false if this role may not see their state.
SELECT (count(*) FILTER (WHERE a.state = 'active'))::int AS working, bool_and(a.state IS NOT NULL) IS NOT FALSE AS "isVisible"
  FROM pg_stat_activity AS a WHERE a.application_name = 'worker' AND a.datname = current_database();
