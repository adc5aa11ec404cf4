-- name: select_own_objects(relations, functions)
-- The objects that the migrations create in the current schema: tables, sequences and functions that they name, and the
-- sequences of the tables' columns.
WITH named AS (
  SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
   WHERE n.nspname = current_schema() AND c.relname = ANY ($1::text[]) AND c.relkind IN ('r', 'p', 'v', 'S')
)
SELECT ARRAY(SELECT c.oid::bigint FROM named AS c UNION
             SELECT d.objid::bigint FROM named AS c JOIN pg_depend AS d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
               JOIN pg_class AS s ON d.classid = 'pg_class'::regclass AND s.oid = d.objid AND s.relkind = 'S') AS relations,
       ARRAY(SELECT p.oid::bigint FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
              WHERE n.nspname = current_schema() AND p.proname = ANY ($2::text[])) AS functions;

-- name: find_role_prefix
-- The prefix of the names of this schema's three roles: `_api`, `_log` and `_admin` follow it, and all of them may use
-- the schema. Null before the first `db roles`.
SELECT min(f.prefix) AS prefix
  FROM (SELECT substring(r.rolname FROM '^(.+)_(?:api|log|admin)$') AS prefix
          FROM pg_namespace AS n, aclexplode(n.nspacl) AS acl JOIN pg_roles AS r ON r.oid = acl.grantee
         WHERE n.nspname = current_schema() AND acl.privilege_type = 'USAGE'
         GROUP BY 1 HAVING count(DISTINCT r.rolname) = 3) AS f;

-- name: list_default_rights(relations, functions, prefix?)
-- The rights on these objects that PUBLIC has, or that a role has by the owner's default privileges, and the statements
-- that revoke them. For a function, also returns a statement that grants the right to the deployment's own roles, which
-- would otherwise lose it until `db roles` runs.
WITH object AS (
  SELECT CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, c.oid::regclass::text AS name, c.relowner AS owner, c.relnamespace AS schema,
         acl.grantee
    FROM pg_class AS c CROSS JOIN LATERAL (
           SELECT t.grantee FROM aclexplode(c.relacl) AS t UNION
           SELECT t.grantee FROM pg_attribute AS a, aclexplode(a.attacl) AS t WHERE a.attrelid = c.oid) AS acl
   WHERE c.oid = ANY ($1::bigint[]::oid[])
   UNION
  SELECT 'ROUTINE', p.oid::regprocedure::text, p.proowner, p.pronamespace, acl.grantee
    FROM pg_proc AS p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS acl
   WHERE p.oid = ANY ($2::bigint[]::oid[])
), own AS (
  SELECT r.oid, r.rolname FROM pg_roles AS r
   WHERE r.rolname IN ($3::text || '_api', $3::text || '_log', $3::text || '_admin')
)
SELECT CASE o.grantee WHEN 0 THEN 'PUBLIC' ELSE o.grantee::regrole::text END AS grantee,
       format('REVOKE ALL ON %s %s FROM %s CASCADE', o.kind, o.name, CASE o.grantee WHEN 0 THEN 'PUBLIC' ELSE o.grantee::regrole::text END) AS revoke,
       CASE WHEN o.grantee = 0 AND o.kind = 'ROUTINE'
            THEN (SELECT format('GRANT EXECUTE ON ROUTINE %s TO %s', o.name, string_agg(quote_ident(w.rolname), ', ')) FROM own AS w HAVING count(*) > 0)
        END AS grant
  FROM object AS o
 WHERE o.grantee <> o.owner AND pg_has_role(o.owner, 'USAGE') AND o.grantee NOT IN (SELECT w.oid FROM own AS w)
   AND (o.grantee = 0 OR EXISTS (
         SELECT FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS acl
          WHERE d.defaclrole = o.owner AND d.defaclnamespace IN (0, o.schema) AND acl.grantee = o.grantee))
 ORDER BY 1, 2;

-- name: compare_rights(relations, functions, roles, privileges, objects, columns)
-- What roles may do with these objects and their schema beyond the grants, and what the grants' roles lack. The grants
-- are in $3 to $6, with the column '' for a whole table. Includes rights through PUBLIC and through membership. A role
-- that was granted one of the service's roles may have the rights of that role. Excludes superusers and owners.
WITH here AS (
  SELECT n.oid, n.nspname, n.nspowner, d.datname, d.datdba,
         CASE WHEN current_setting('server_version_num')::int < 160000 THEN 'USAGE, MEMBER' ELSE 'USAGE, SET' END AS becomes,
         ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']
         || CASE WHEN current_setting('server_version_num')::int < 170000 THEN '{}' ELSE ARRAY['MAINTAIN'] END AS of_tables
    FROM pg_namespace AS n JOIN pg_database AS d ON d.datname = current_database() WHERE n.nspname = current_schema()
), granted AS (
  SELECT r.oid AS role, g.name, g.privilege, g.object, g.col
    FROM unnest($3::text[], $4::text[], $5::text[], $6::text[]) AS g (name, privilege, object, col) JOIN pg_roles AS r ON r.rolname = g.name
), relation AS (
  SELECT c.oid, c.relname::text AS name, c.relkind = 'S' AS is_sequence, c.relowner AS owner FROM pg_class AS c WHERE c.oid = ANY ($1::bigint[]::oid[])
), routine AS (
  SELECT p.oid, p.proname::text AS name, p.proowner AS owner FROM pg_proc AS p WHERE p.oid = ANY ($2::bigint[]::oid[])
), owner AS (
  SELECT h.nspowner AS oid FROM here AS h UNION SELECT h.datdba FROM here AS h
   UNION SELECT c.owner FROM relation AS c UNION SELECT p.owner FROM routine AS p
), own AS (
  SELECT r.* FROM pg_roles AS r WHERE r.rolname = ANY ($3::text[])
), role AS (
  SELECT r.oid, r.rolname::text AS name FROM pg_roles AS r
   WHERE NOT r.rolsuper AND r.rolname NOT LIKE 'pg\_%' AND r.oid NOT IN (SELECT o.oid FROM owner AS o)
), stands_in AS (
  SELECT r.oid, r.name, 'is a member of ' || m.rolname AS may
    FROM here AS h, role AS r, pg_roles AS m
   WHERE (m.oid IN (SELECT o.oid FROM owner AS o WHERE m.rolname <> 'pg_database_owner') OR m.rolname IN ('pg_execute_server_program', 'pg_read_server_files', 'pg_write_server_files'))
     AND pg_has_role(r.oid, m.oid, h.becomes)
), compared AS (
  SELECT r.oid, r.name FROM role AS r WHERE r.oid NOT IN (SELECT s.oid FROM stands_in AS s) UNION ALL SELECT 0, 'PUBLIC'
), allowed AS (
  SELECT r.oid, g.privilege, g.object, g.col
    FROM here AS h, compared AS r JOIN granted AS g ON CASE WHEN r.oid <> 0 THEN g.role = r.oid OR pg_has_role(r.oid, g.role, (SELECT becomes FROM here)) END
), held AS (
  SELECT r.oid, r.name, k.kind AS privilege, c.name AS object, '' AS col
    FROM here AS h, compared AS r, relation AS c, unnest(h.of_tables) AS k (kind) WHERE NOT c.is_sequence AND has_table_privilege(r.oid, c.oid, k.kind)
   UNION ALL
  SELECT r.oid, r.name, k.kind, c.name, a.attname
    FROM compared AS r, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES']) AS k (kind), relation AS c
    JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
   WHERE NOT c.is_sequence AND has_any_column_privilege(r.oid, c.oid, k.kind) AND NOT has_table_privilege(r.oid, c.oid, k.kind)
     AND has_column_privilege(r.oid, c.oid, a.attnum, k.kind)
   UNION ALL
  SELECT r.oid, r.name, k.kind, c.name, '' FROM compared AS r, relation AS c, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS k (kind)
   WHERE c.is_sequence AND CASE WHEN c.is_sequence THEN has_sequence_privilege(r.oid, c.oid, k.kind) END
   UNION ALL
  SELECT r.oid, r.name, 'EXECUTE', p.name, '' FROM compared AS r, routine AS p WHERE has_function_privilege(r.oid, p.oid, 'EXECUTE')
   UNION ALL
  SELECT r.oid, r.name, 'CREATE', 'schema ' || h.nspname, '' FROM here AS h, compared AS r WHERE has_schema_privilege(r.oid, h.oid, 'CREATE')
   UNION ALL
  SELECT r.oid, r.rolname, k.kind, 'database ' || h.datname, ''
    FROM here AS h, own AS r, unnest(ARRAY['CREATE', 'TEMPORARY']) AS k (kind) WHERE has_database_privilege(r.oid, h.datname, k.kind)
), excess AS (
  SELECT e.oid, e.name, e.privilege || CASE e.col WHEN '' THEN '' ELSE ' (' || e.col || ')' END AS may, e.object
    FROM held AS e
   WHERE NOT EXISTS (SELECT FROM allowed AS a WHERE a.oid = e.oid AND a.privilege = e.privilege AND a.object = e.object AND a.col IN ('', e.col))
     AND NOT (e.oid <> 0 AND EXISTS (SELECT FROM held AS p WHERE p.oid = 0 AND p.privilege = e.privilege AND p.object = e.object AND p.col IN ('', e.col)))
   UNION ALL
  SELECT s.oid, s.name, s.may, '' FROM stands_in AS s
   UNION ALL
  SELECT r.oid, r.rolname, 'has the attribute ' || a.name, ''
    FROM own AS r, LATERAL (VALUES ('SUPERUSER', r.rolsuper), ('CREATEROLE', r.rolcreaterole), ('CREATEDB', r.rolcreatedb),
                                   ('REPLICATION', r.rolreplication), ('BYPASSRLS', r.rolbypassrls)) AS a (name, has) WHERE a.has
   UNION ALL
  SELECT r.oid, r.rolname, 'is a member of ' || m.roleid::regrole, '' FROM own AS r JOIN pg_auth_members AS m ON m.member = r.oid
   UNION ALL
  SELECT r.oid, r.rolname, 'owns ' || c.oid::regclass, '' FROM own AS r JOIN pg_class AS c ON c.relowner = r.oid
)
SELECT DISTINCT e.name AS role, e.may, e.object, e.oid IN (SELECT w.oid FROM own AS w) AS "isOwn", false AS "isMissing" FROM excess AS e
 UNION ALL
SELECT g.name, g.privilege || CASE g.col WHEN '' THEN '' ELSE ' (' || g.col || ')' END, g.object, true, true
  FROM granted AS g LEFT JOIN relation AS c ON c.name = g.object LEFT JOIN routine AS p ON p.name = g.object
 WHERE NOT coalesce(CASE WHEN p.oid IS NOT NULL THEN has_function_privilege(g.role, p.oid, g.privilege)
                         WHEN c.is_sequence THEN has_sequence_privilege(g.role, c.oid, g.privilege)
                         WHEN g.col = '' THEN has_table_privilege(g.role, c.oid, g.privilege)
                         ELSE has_column_privilege(g.role, c.oid, g.col, g.privilege) END, false)
 ORDER BY 1, 3, 2;

-- name: find_databases_of_roles(names)
-- The other databases of the server in which roles with these names own something or have rights.
SELECT DISTINCT d.datname::text AS name
  FROM pg_roles AS r JOIN pg_shdepend AS s ON s.refclassid = 'pg_authid'::regclass AND s.refobjid = r.oid
  JOIN pg_database AS d ON d.oid = CASE WHEN s.classid = 'pg_database'::regclass THEN s.objid ELSE s.dbid END
 WHERE r.rolname = ANY ($1::text[]) AND d.datname <> current_database() ORDER BY 1;
