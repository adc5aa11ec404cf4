-- Revokes all rights of the roles on the schema of the tables (the current one) and on this database. Runs in the same
-- transaction as `grants.sql`, before it.

-- Revokes only rights that were granted, because the owner of this database may not own every table in it.
DO $$
DECLARE
  held record;
BEGIN
  FOR held IN
    SELECT DISTINCT c.oid::regclass::text AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
      FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid
     CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) UNION ALL SELECT * FROM aclexplode(a.attacl)) AS acl
     WHERE n.nspname = current_schema() AND acl.grantee IN ('pva_api'::regrole, 'pva_log'::regrole, 'pva_admin'::regrole)
     UNION ALL
    SELECT DISTINCT p.oid::regprocedure::text, 'ROUTINE' FROM pg_namespace AS n JOIN pg_proc AS p ON p.pronamespace = n.oid, aclexplode(p.proacl) AS acl
     WHERE n.nspname = current_schema() AND acl.grantee IN ('pva_api'::regrole, 'pva_log'::regrole, 'pva_admin'::regrole)
  LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM pva_api, pva_log, pva_admin', held.kind, held.name);
  END LOOP;
END
$$;

DO $$
BEGIN
  EXECUTE format('REVOKE ALL ON SCHEMA %I FROM pva_api, pva_log, pva_admin', current_schema());
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM pva_api, pva_log, pva_admin', current_database());
END
$$;
