-- name: select_applied_migrations
-- The names and hashes of the applied migrations, from the migration library's table.
SELECT m.name::text AS name, m.hash::text AS hash FROM migrations AS m;
