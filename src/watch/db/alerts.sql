-- name: select_alerts
-- The messages that were sent about red faults, and the version of this state.
SELECT a.version, a.state FROM alerts AS a WHERE a.singleton;

-- name: replace_alerts(before, version, state)
-- Replaces this state, unless another process did so first. Waits for the disk of this server alone: the absence of a
-- synchronous standby must be sent, too. What a failover loses is sent twice.
UPDATE alerts AS a SET version = $2::integer, state = $3::jsonb
  FROM set_config('synchronous_commit', 'local', true) AS c
 WHERE a.singleton AND a.version = $1::integer;
