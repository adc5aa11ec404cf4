-- name: identify_database(newest_position?, lasting_position?)
-- Identifies the server and database of a new connection. Returns the deployment, whether the server is read-only,
-- whether the database is a copy of the one that wrote the deployment's row, and the server's marks at the positions
-- that the process remembers (recall_marks). The timeline is in hex. It rises with every promotion, and a standby has
-- none. Servers with the same files differ in their start. The host is for operators. The fingerprint of server and
-- database is short, because every job and every reply contains it.
SELECT d.id AS "deploymentId", current_setting('transaction_read_only') = 'on' AS "readOnly",
       d.system_identifier <> s.system_identifier OR d.database_oid <> db.oid AS "isCopy",
       left(encode(sha256(convert_to(concat_ws('/', s.system_identifier, db.oid), 'UTF8')), 'hex'), 12) AS database,
       CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline,
       to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint) AS started,
       coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a Unix socket') AS host,
       (SELECT m.id FROM database_marks AS m WHERE m.position = $1::bigint) AS "newestId",
       (SELECT m.id FROM database_marks AS m WHERE m.position = $2::bigint) AS "lastingId",
       (SELECT min(m.position) FROM database_marks AS m) AS "oldestPosition",
       ARRAY(SELECT a.id FROM accepted_losses AS a) AS "acceptedLosses",
       c.clock_trusted_at AS "trustedAt", c.closed_until AS "closedUntil", clock_timestamp() AS now
  FROM deployment AS d CROSS JOIN redemptions_closed AS c CROSS JOIN pg_control_system() AS s
  JOIN pg_database AS db ON db.datname = current_database()
 WHERE d.singleton;

-- name: observe_clock
-- The time, when an operator last declared that the clock is right, and the closed time.
SELECT c.clock_trusted_at AS "trustedAt", c.closed_until AS "closedUntil", clock_timestamp() AS now
  FROM redemptions_closed AS c WHERE c.singleton;
