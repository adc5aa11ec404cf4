-- name: select_alerts
-- The state of the messages about red faults, and its version.
SELECT a.version, a.state FROM alerts AS a WHERE a.singleton;

-- name: replace_alerts(before, version, state)
-- Replaces the state, unless another process did so first. Waits only for the disk of this server: a message about a missing synchronous standby must
-- not wait for that standby. If a failover loses the change, its message is sent twice.
UPDATE alerts AS a SET version = $2::integer, state = $3::jsonb
  FROM set_config('synchronous_commit', 'local', true) AS c
 WHERE a.singleton AND a.version = $1::integer;
