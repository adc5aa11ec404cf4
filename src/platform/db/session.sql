-- name: set_session(name, value, kept)
-- Sets settings that this server knows. Keeps a setting's current value if $3 contains it as `name=value`.
SELECT FROM unnest($1::text[], $2::text[]) AS s (name, value) CROSS JOIN LATERAL set_config(s.name, s.value, false) AS c
 WHERE current_setting(s.name, true) IS NOT NULL AND s.name || '=' || current_setting(s.name, true) <> ALL ($3::text[]);

-- name: pin_schema(finds_elsewhere)
-- Sets search_path to one schema. This is the first of: the schema of the tables that search_path finds; if $1 is true,
-- the only usable schema of this database with the tables; the schema in which search_path creates tables.
SELECT FROM (SELECT coalesce(
          (SELECT n.nspname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('redemptions_closed')),
          (SELECT min(n.nspname::text) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE $1::boolean AND c.relname = 'redemptions_closed' AND c.relkind = 'r' AND has_schema_privilege(n.oid, 'USAGE')
           HAVING count(*) = 1),
          current_schema()::text) AS name) AS s
 CROSS JOIN LATERAL set_config('search_path', format('%I, pg_temp', s.name), false) AS c
 WHERE s.name IS NOT NULL;

-- name: read_session(names, definers)
-- The state of the session: the values of the settings and the schema. A setting that the server does not know is null.
-- SQL splits the search_path of a function into names, because a setting of the server decides which names are quoted.
SELECT ARRAY(SELECT current_setting(s.name, true) FROM unnest($1::text[]) WITH ORDINALITY AS s (name, place) ORDER BY s.place) AS values,
       pg_is_in_recovery() AS "isStandby", current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding,
       current_database()::text AS database, session_user::text AS role, current_schema()::text AS schema,
       EXISTS (SELECT FROM pg_class AS c WHERE c.relname = 'redemptions_closed' AND c.relkind = 'r' AND c.relnamespace = n.oid) AS "hasTables",
       EXISTS (SELECT FROM pg_class AS c WHERE c.relname = 'migrations' AND c.relnamespace = n.oid
                AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'hash')) AS "hasForeignTable",
       ARRAY(SELECT o.nspname::text FROM pg_class AS c JOIN pg_namespace AS o ON o.oid = c.relnamespace
              WHERE c.relname = 'redemptions_closed' AND c.relkind = 'r' ORDER BY 1) AS schemas,
       ARRAY(SELECT p.oid::regprocedure::text FROM pg_proc AS p
              WHERE p.pronamespace = n.oid AND p.proname = ANY ($2::text[])
                AND (cardinality(p.proconfig) = 1 AND p.proconfig[1] LIKE 'search_path=%'
                     AND ARRAY(SELECT coalesce(replace(m.parts[1], '""', '"'), m.parts[2])
                                 FROM regexp_matches(substr(p.proconfig[1], 13), '"((?:[^"]|"")*)"|([^", ]+)', 'g') WITH ORDINALITY AS m (parts, place)
                                ORDER BY m.place) = ARRAY[n.nspname::text, 'pg_temp']) IS NOT TRUE ORDER BY 1) AS "strayFunctions",
       ARRAY(SELECT c.relname::text FROM pg_class AS c
              WHERE c.relnamespace = n.oid AND c.relrowsecurity AND row_security_active(c.oid) ORDER BY 1) AS "filteredTables",
       EXISTS (SELECT FROM pg_proc AS p WHERE p.proname = 'pg_logical_emit_message' AND p.proargtypes[2] = 'text'::regtype
                AND has_function_privilege(p.oid, 'EXECUTE')) AS "mayEmitMessages"
  FROM (SELECT current_schema() AS name) AS s LEFT JOIN pg_namespace AS n ON n.nspname = s.name;

-- name: probe_position
-- Calls the functions that identify_database and recall_marks use, to find out whether the server allows them.
SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END AS position;

-- name: probe_identity
-- Calls the function that identify_database uses, to find out whether the server allows it.
SELECT s.system_identifier::text AS identifier FROM pg_control_system() AS s;
