-- name: select_durability_settings
-- The values in this session of the settings that decide whether a committed transaction survives a crash or a failover, and whether the
-- server is a standby.
SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS "fullPageWrites",
       current_setting('synchronous_standby_names') AS "synchronousStandbyNames",
       current_setting('restart_after_crash') AS "restartAfterCrash", pg_is_in_recovery() AS "isStandby";

-- name: await_standbys
-- Makes the COMMIT of its transaction wait for the synchronous standbys, even if it writes nothing else: what it has read is then on them too.
SELECT FROM pg_logical_emit_message(true, 'confirm', '');

-- name: read_server
-- When the server was started, because another one has another time, and the process that serves this connection.
SELECT to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint) AS started, pg_backend_pid() AS pid;

-- name: end_wait(pid)
-- Ends the wait of another connection for the standbys. Its COMMIT then returns with a warning.
SELECT FROM pg_cancel_backend($1::int);
