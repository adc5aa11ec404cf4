-- name: identify_database
-- Identifies what a new connection reached: the deployment, whether the server is read-only, whether the database is a copy of the one that
-- wrote the deployment's row, a fingerprint of server and database, and the server's timeline in hex, which every promotion raises. A
-- standby has no timeline. The fingerprint is short because every job and every reply carries it.
SELECT d.id AS "deploymentId", current_setting('transaction_read_only') = 'on' AS "readOnly",
       d.system_identifier <> s.system_identifier OR d.database_oid <> db.oid AS "isCopy",
       left(encode(sha256(convert_to(concat_ws('/', s.system_identifier, db.oid), 'UTF8')), 'hex'), 12) AS database,
       CASE WHEN pg_is_in_recovery() THEN '' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline
  FROM deployment AS d CROSS JOIN pg_control_system() AS s JOIN pg_database AS db ON db.datname = current_database()
 WHERE d.singleton;

-- name: read_deployment_id
-- The deployment that this database belongs to.
SELECT d.id FROM deployment AS d WHERE d.singleton;

-- name: adopt_database
-- Makes this database a deployment of its own, with a new id.
UPDATE deployment AS d
   SET id = left(replace(gen_random_uuid()::text, '-', ''), 12), system_identifier = (SELECT s.system_identifier FROM pg_control_system() AS s),
       database_oid = (SELECT db.oid FROM pg_database AS db WHERE db.datname = current_database())
 WHERE d.singleton
RETURNING d.id;
