-- name: select_alerts
-- What was told of red faults, and its version.
SELECT a.version, a.state FROM alerts AS a WHERE a.singleton;

-- name: replace_alerts(before, version, state)
-- Replaces it, unless another process did so first. Waits for the disk of this server alone: while a synchronous standby is away, that must be told.
-- What a failover loses is told twice.
UPDATE alerts AS a SET version = $2::integer, state = $3::jsonb
  FROM set_config('synchronous_commit', 'local', true) AS c
 WHERE a.singleton AND a.version = $1::integer;
