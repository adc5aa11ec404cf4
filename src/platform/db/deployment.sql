-- name: read_deployment_id
-- The deployment to which this database belongs.
SELECT d.id FROM deployment AS d WHERE d.singleton;

-- name: adopt_database
-- Makes this database a separate deployment with a new id.
UPDATE deployment AS d
   SET id = left(replace(gen_random_uuid()::text, '-', ''), 12), system_identifier = (SELECT s.system_identifier FROM pg_control_system() AS s),
       database_oid = (SELECT db.oid FROM pg_database AS db WHERE db.datname = current_database())
 WHERE d.singleton
RETURNING d.id;
