-- name: add_mark
-- Adds a mark, unless the last one is less than a second old. The COMMIT waits for the disk and the synchronous
-- standbys, regardless of the session's settings. So it confirms all earlier visible marks too.
SELECT FROM set_config('synchronous_commit', 'on', true) AS c CROSS JOIN set_config('statement_timeout', '5s', true) AS t
 CROSS JOIN pg_logical_emit_message(true, 'mark', '') AS e CROSS JOIN add_mark() AS a;

-- name: select_newest_mark
-- The newest mark, and a mark that is at least 300 marks older, which is about five minutes. If a promoted standby
-- lacks the older mark, it had lagged by more than a failover can explain.
SELECT m.position, m.id, o.position AS "older.position", o.id AS "older.id",
       to_hex((extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint) AS started,
       current_setting('synchronous_standby_names') <> '' AS "isReplicated"
  FROM (SELECT n.position, n.id FROM database_marks AS n ORDER BY n.position DESC LIMIT 1) AS m
  LEFT JOIN LATERAL (SELECT p.position, p.id FROM database_marks AS p WHERE p.position <= m.position - 300
                      ORDER BY p.position DESC LIMIT 1) AS o ON true;

-- name: recall_marks(newest_position?, lasting_position?)
-- What a process compares with its memory: the server's marks at the remembered positions, its oldest mark, and the
-- losses that operators have accepted.
SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) AS timeline,
       (SELECT m.id FROM database_marks AS m WHERE m.position = $1::bigint) AS "newestId",
       (SELECT m.id FROM database_marks AS m WHERE m.position = $2::bigint) AS "lastingId",
       (SELECT min(m.position) FROM database_marks AS m) AS "oldestPosition",
       ARRAY(SELECT a.id FROM accepted_losses AS a) AS "acceptedLosses",
       current_setting('synchronous_standby_names') <> '' AS "isReplicated";

-- name: insert_accepted_loss
-- Records that an operator accepts this database's loss of data. Processes that refused the database because of the
-- loss then admit it.
INSERT INTO accepted_losses (accepted_at) VALUES (clock_timestamp());
