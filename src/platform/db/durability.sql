-- name: await_standbys
-- Makes the COMMIT of its transaction wait for the synchronous standbys, even if the transaction writes nothing else.
-- The standbys then have everything that the transaction has read.
SELECT FROM pg_logical_emit_message(true, 'confirm', '');

-- name: read_server
-- When the server was started. A different time means another server or a restart.
SELECT to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint) AS started;
