-- The rights of the two roles, in this database alone. Everything they had here is taken away first, in the same transaction, so that
-- this file says all of it and a run after every migration settles what is new. A table that is not named gives them nothing.
-- Nobody may DELETE or TRUNCATE anything, and nobody but the owner may change a definition.

-- Only where they have something: the owner of this database may have no say over other tables in it.
DO $$
DECLARE
  held record;
BEGIN
  FOR held IN
    SELECT DISTINCT c.oid::regclass AS name, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind
      FROM pg_class AS c LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid
     CROSS JOIN LATERAL (SELECT * FROM aclexplode(c.relacl) UNION ALL SELECT * FROM aclexplode(a.attacl)) AS acl
     WHERE c.relnamespace = 'public'::regnamespace AND acl.grantee IN ('pva_api'::regrole, 'pva_admin'::regrole)
  LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM pva_api, pva_admin', held.kind, held.name);
  END LOOP;
END
$$;
REVOKE ALL ON SCHEMA public FROM pva_api, pva_admin;
GRANT USAGE ON SCHEMA public TO pva_api, pva_admin;

-- Every role has what PUBLIC has. PostgreSQL 15 gives PUBLIC no CREATE in a new database, but an upgraded one may still have it, and
-- temporary tables are everybody's by default. The service needs neither.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
DO $$
BEGIN
  EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC, pva_api, pva_admin', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO pva_api, pva_admin', current_database());
END
$$;

-- What both roles' statements call. A database may give PUBLIC no right to run functions.
GRANT EXECUTE ON FUNCTION demand_rows(bigint, integer, text) TO pva_api, pva_admin;

-- pva_api: the API and worker processes.

-- What administration makes and the service reads. No right on organizations: every statement knows its organization from the key.
GRANT SELECT ON deployment, brands, products, batches, batch_windows, listings, members, referrer_contracts, referral_links,
                api_keys, api_key_secrets
   TO pva_api;
-- The sweeper's mark on expired batches, and the end of contracts past theirs.
GRANT UPDATE (expiry_recorded_to) ON batches TO pva_api;
GRANT UPDATE (status, changed_at) ON referrer_contracts TO pva_api;

-- Vouchers move and are never made here. An UPDATE right on any column is also what locking a row asks for.
GRANT SELECT ON vouchers TO pva_api;
GRANT UPDATE (status, redeemed_at, pickable, last_sequence, sealed_sequence, sealed_hash) ON vouchers TO pva_api;

-- Holds open and end. What a hold was opened with stays.
GRANT SELECT ON reservations TO pva_api;
GRANT INSERT (ticket, voucher_id, organization_id, key_id, state, started_at, expires_at, token_secret_id) ON reservations TO pva_api;
GRANT UPDATE (state, ended_at, end_reason) ON reservations TO pva_api;

-- Burns are written once.
GRANT SELECT, INSERT ON redemptions TO pva_api;

-- Events are appended, and the four columns of the seal are filled once; the table's trigger sees to the once.
GRANT SELECT, INSERT ON voucher_events TO pva_api;
GRANT UPDATE (seal_status, previous_hash, record_hash, payload) ON voucher_events TO pva_api;

-- Takings: the user's row comes first, its voucher is filled in before the commit.
GRANT SELECT ON claims, purchases TO pva_api;
GRANT INSERT (user_id, product_id), UPDATE (voucher_id) ON claims TO pva_api;
GRANT INSERT (user_id, payment_ref), UPDATE (voucher_id) ON purchases TO pva_api;

-- How far the sweeper's rolling tasks are.
GRANT SELECT, INSERT ON sweep_positions TO pva_api;
GRANT UPDATE (moved_at, position) ON sweep_positions TO pva_api;

-- When keys were last used. The keys themselves are out of reach.
GRANT SELECT, INSERT ON api_key_uses TO pva_api;
GRANT UPDATE (last_used_at) ON api_key_uses TO pva_api;

-- pva_admin: voucherctl.

-- The catalogue is added to and never changed.
GRANT SELECT ON organizations, brands, products, batches, batch_windows, listings, members, referrer_contracts, referral_links
   TO pva_admin;
GRANT INSERT (id, name) ON organizations TO pva_admin;
GRANT INSERT (id, organization_id, name) ON brands TO pva_admin;
GRANT INSERT (id, brand_id, key, name, type, retail_price_usd, price_usd, benefit_months, usage_unit_label) ON products TO pva_admin;
GRANT INSERT (id, product_id, audience, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months, usage_unit_label)
   ON batches TO pva_admin;
GRANT INSERT ON batch_windows TO pva_admin;
GRANT INSERT (id, batch_id) ON listings TO pva_admin;
GRANT INSERT (organization_id, user_id, role), UPDATE (role) ON members TO pva_admin;
GRANT INSERT (id, brand_id, user_id, ends_at), UPDATE (status, changed_at) ON referrer_contracts TO pva_admin;
GRANT INSERT (code, contract_id, product_id, brand_id) ON referral_links TO pva_admin;

-- Keys are made, get another secret, and end.
GRANT SELECT ON api_keys, api_key_secrets, api_key_uses TO pva_admin;
GRANT INSERT (id, organization_id, label, scopes, allow_ips, expires_at), UPDATE (revoked_at) ON api_keys TO pva_admin;
GRANT INSERT (key_id, secret_hash), UPDATE (expires_at) ON api_key_secrets TO pva_admin;

-- Vouchers are issued with their first event, shown and voided; a hold on a voided one ends. Without Redis the event of a voided
-- voucher is sealed here.
GRANT SELECT ON vouchers, reservations, redemptions, voucher_events TO pva_admin;
GRANT INSERT (id, organization_id, batch_id, serial, last_sequence, sealed_sequence, code, code_key, sealed_hash, pickable)
   ON vouchers TO pva_admin;
GRANT UPDATE (status, pickable, last_sequence, sealed_sequence, sealed_hash) ON vouchers TO pva_admin;
GRANT UPDATE (state, ended_at, end_reason) ON reservations TO pva_admin;
GRANT INSERT ON voucher_events TO pva_admin;
GRANT UPDATE (seal_status, previous_hash, record_hash, payload) ON voucher_events TO pva_admin;

-- Acts are recorded, with moment and role filled in by the table's trigger, and read.
GRANT SELECT ON admin_acts TO pva_admin;
GRANT INSERT (os_user, host, command, arguments, entity_type, entity_id, before, after) ON admin_acts TO pva_admin;
