-- name: select_durability_settings
-- The values in this session of the settings that decide whether a committed transaction survives a crash or a failover, and whether the
-- server is a standby.
SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS "fullPageWrites",
       current_setting('synchronous_commit') AS "synchronousCommit",
       current_setting('synchronous_standby_names') AS "synchronousStandbyNames",
       current_setting('restart_after_crash') AS "restartAfterCrash", pg_is_in_recovery() AS "isStandby";

-- name: select_weakened_roles
-- The roles, and this database, whose own synchronous_commit makes COMMIT return before the synchronous standbys have the transaction on disk.
-- Postgres stores a setting as it was written: true, yes and 1 mean on.
SELECT DISTINCT COALESCE('role ' || r.rolname, 'database ' || d.datname) AS subject, c.setting
  FROM pg_db_role_setting AS s
  LEFT JOIN pg_roles AS r ON r.oid = s.setrole
  LEFT JOIN pg_database AS d ON d.oid = s.setdatabase
 CROSS JOIN LATERAL unnest(s.setconfig) AS c (setting)
 WHERE c.setting LIKE 'synchronous\_commit=%' AND lower(split_part(c.setting, '=', 2)) NOT IN ('on', 'remote_apply', 'true', 'yes', '1')
   AND (s.setdatabase = 0 OR d.datname = current_database())
 ORDER BY 1, 2;

-- name: await_standbys
-- Makes the COMMIT of its transaction wait for the synchronous standbys, even if it writes nothing else: what it has read is then on them too.
SELECT FROM pg_logical_emit_message(true, 'confirm', '');
