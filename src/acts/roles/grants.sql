-- The rights of the roles on the schema of the tables (the current one) and on this database. Rights for the statements
-- of a wing are in the wing's own `grants.sql`. `applyGrants` replaces pva_api, pva_log and pva_admin by the names of
-- the deployment's own roles. It runs `revokes.sql` first, so it can run after every migration. The roles have rights
-- only on the tables that these files name. No role may TRUNCATE. The roles may DELETE only from the tables of
-- webhooks, reservations, ends of references, counts, faults and processes. Only the owner may change a definition.
-- `compareRights` reads the GRANTs on tables, sequences and functions from these files.

-- Every role has the rights of PUBLIC. By default, PUBLIC may create temporary tables. In a database created before
-- PostgreSQL 15, it may also create other tables. The service needs neither.
DO $$
BEGIN
  EXECUTE format('GRANT USAGE ON SCHEMA %I TO pva_api, pva_log, pva_admin', current_schema());
  EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
  EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO pva_api, pva_log, pva_admin', current_database());
END
$$;

-- PUBLIC may call no function of the service. Statements of all roles call this function.
GRANT EXECUTE ON FUNCTION assert_row_count(bigint, integer, text) TO pva_api, pva_log, pva_admin;

-- Statements that read when a voucher ends call this function.
GRANT EXECUTE ON FUNCTION voucher_end(timestamptz, timestamptz, timestamptz) TO pva_api, pva_admin;
-- Statements that read whether a voucher is suspended call this function.
GRANT EXECUTE ON FUNCTION voucher_suspended(text, timestamptz) TO pva_api, pva_admin;

-- Statements that read histories call these functions, and so do triggers on data that may be erased.
GRANT EXECUTE ON FUNCTION log_index_of(bigint, bigint[], bigint), owns_table(oid) TO pva_api, pva_admin;

-- The service makes the times of batches, windows, contracts and reservations earlier only with this function, which
-- refuses live organizations.
GRANT EXECUTE ON FUNCTION advance_sandbox(text, integer, text, text, text) TO pva_api;

-- Statements find the replacement of an erased text with these functions. No role may read the erasure keys.
GRANT EXECUTE ON FUNCTION erased_form(text, text), redemptions_under(text, text) TO pva_api, pva_admin;
GRANT SELECT (owner, used) ON erasure_keys TO pva_api, pva_admin;
-- Erasures change data that no other statement may change. They find vouchers by claims and purchases.
GRANT EXECUTE ON FUNCTION erase_events(text[], integer[], timestamptz), erase_user(text, timestamptz),
  erase_reference(text, text, timestamptz), find_erased_users(text[]), find_erased_references(text[], text[]) TO pva_admin;
GRANT SELECT ON erasures, erased_users, claims, purchases TO pva_admin;
-- Finds what audit entries and sent forms contain about a user, in the same way as an erasure.
GRANT EXECUTE ON FUNCTION named_users(jsonb) TO pva_admin;

-- Processes add random marks only with this function. A server that lacks a mark which a process knows has lost
-- commits.
GRANT EXECUTE ON FUNCTION add_mark() TO pva_api, pva_log;
GRANT SELECT ON database_marks, accepted_losses TO pva_api, pva_log, pva_admin;

-- pva_api: the API and worker processes.

-- voucherctl and the console write these tables, and the service reads them.
GRANT SELECT ON organizations, deployment, migrations, brands, brand_logos, products, batches, batch_windows, listings, members, referrer_contracts, referral_links,
                api_keys, api_key_secrets
   TO pva_api;
-- The sweeper records the expiry of batches, and adds missing events to the histories of suspended batches.
GRANT UPDATE (expiry_recorded_to, suspension_due_at) ON batches TO pva_api;

-- Vouchers are changed, never inserted. Locking a row requires the UPDATE right on at least one column.
GRANT SELECT ON vouchers TO pva_api;
GRANT UPDATE (status, redeemed_at, pickable, last_sequence, sealed_sequence, sealed_hash, expiry_due, suspension) ON vouchers TO pva_api;

-- A trigger counts the redemptions of keys with a daily limit.
GRANT SELECT, INSERT ON key_days TO pva_api, pva_admin;
GRANT UPDATE (redemptions, amount_usd) ON key_days TO pva_api, pva_admin;
GRANT EXECUTE ON FUNCTION key_cap_lock(text) TO pva_api, pva_admin;

-- Reservations are opened and ended. The service cannot change their other columns. A trigger rejects the deletion of a
-- reservation that may still be needed.
GRANT SELECT, DELETE ON reservations TO pva_api;
GRANT INSERT (ticket, voucher_id, organization_id, key_id, state, started_at, expires_at, token_secret_id) ON reservations TO pva_api;
GRANT UPDATE (state, ended_at, end_reason) ON reservations TO pva_api;

-- Redemptions are inserted and never changed.
GRANT SELECT, INSERT ON redemptions TO pva_api;

-- No redemption can be inserted before `closed_until`. Lists of redemptions are final up to `complete_until`. Triggers
-- ensure that both only move forward.
GRANT SELECT, UPDATE (closed_until, complete_until) ON redemptions_closed TO pva_api;

-- Final statements are stored as they were first read. A trigger rejects statements of months to which redemptions may
-- still be added. If the log is on, a statement needs a note, which only the log's worker writes.
GRANT SELECT, INSERT (organization_id, month, content, note_due) ON statements TO pva_api;
GRANT SELECT ON log_tree TO pva_api;

-- Rows that record the end of a reference. A trigger rejects the deletion of a row while an attempt may still need it.
GRANT SELECT, INSERT (generation, organization_id, external_ref), UPDATE (version, generation), DELETE ON reference_ends TO pva_api;
GRANT SELECT, UPDATE (generation, started_at) ON reference_generation TO pva_api;

-- Events are appended. The columns of the seal are set once, and a trigger rejects every later change.
GRANT SELECT, INSERT ON voucher_events TO pva_api;
GRANT UPDATE (seal_status, previous_hash, record_hash, payload, log_slot) ON voucher_events TO pva_api;

-- The leaves of sealed events wait here for their positions in the log.
GRANT INSERT (id, leaves, hashes) ON log_batches TO pva_api;
GRANT SELECT (id, first_index, places) ON log_batches TO pva_api;
GRANT SELECT ON log_published TO pva_api;
GRANT USAGE ON SEQUENCE log_batch_ids TO pva_api;

-- The end of the event feed moves forward, up to the last id taken from the sequence. A trigger rejects a move back.
GRANT SELECT ON SEQUENCE log_batch_ids TO pva_api;
GRANT EXECUTE ON FUNCTION event_writers(), move_event_feed(timestamptz) TO pva_api;
GRANT SELECT, UPDATE (final_id, complete_until, next_id, next_complete_until, next_at, writers) ON event_feed TO pva_api;

-- The sweeper counts redemptions and acquisitions for operators, and deletes old counts.
GRANT SELECT ON claims, purchases TO pva_api;
GRANT SELECT, INSERT, UPDATE (redemptions, claims), DELETE ON activity_counts TO pva_api;
GRANT SELECT, INSERT, UPDATE (acquired), DELETE ON acquired_counts TO pva_api;
GRANT SELECT, UPDATE (counted_until, clock_trusted_at) ON activity_counted TO pva_api;

-- API processes record the faults that operators see, and delete faults that ended long ago.
GRANT SELECT, INSERT (kind, subject, page, severity, what, since, told), DELETE ON faults TO pva_api;
GRANT UPDATE (severity, what, since, ended_at, told, tried_at, failing_since) ON faults TO pva_api;

-- Each process reads which database it uses.
GRANT SELECT ON deployment, migrations, redemptions_closed TO pva_log;

-- Each process records that it runs. Workers record the answers to canaries, and the sweeper deletes old records.
GRANT SELECT, INSERT (id, role, host, pid, version, queues, busy, problem) ON processes TO pva_api, pva_log;
GRANT UPDATE (seen_at, queues, busy, problem) ON processes TO pva_api, pva_log;
GRANT UPDATE (canary_at), DELETE ON processes TO pva_api;
-- `npm run scale-check` reads how busy the processes are.
GRANT SELECT ON processes TO pva_admin;

-- Some tasks of the sweeper check all rows in rounds. They store the positions at which they have stopped.
GRANT SELECT, INSERT ON sweep_positions TO pva_api;
GRANT UPDATE (moved_at, position) ON sweep_positions TO pva_api;

-- The sweeper records broken chains. It keeps the row of a chain that a later check found intact.
GRANT SELECT, INSERT ON broken_chains TO pva_api;
GRANT UPDATE (found_at, whole_at) ON broken_chains TO pva_api;

-- The service records when API keys were last used. It cannot change the keys themselves.
GRANT SELECT, INSERT ON api_key_uses TO pva_api;
GRANT UPDATE (last_used_at, old_secrets_used_at) ON api_key_uses TO pva_api;

-- Events of organizations with an enabled webhook endpoint are written to the outbox.
GRANT SELECT ON webhook_endpoints TO pva_api, pva_admin;
GRANT INSERT (organization_id, voucher_ids, sequences, tickets) ON webhook_outbox TO pva_api, pva_admin;

-- Page views by operators are recorded. `before` and `after` cannot be set, so such an entry cannot claim a change.
GRANT INSERT (os_user, host, by, command, arguments, entity_type, entity_id) ON audit_entries TO pva_api;
-- The operator pages list changes without states, and show why a queue is paused.
GRANT SELECT (id, at, os_user, host, by, command, arguments, entity_type, entity_id) ON audit_entries TO pva_api;

-- Named operators sign in, and the pages list them. The service cannot change operators.
GRANT SELECT ON operators TO pva_api;
GRANT SELECT (token_hash, operator_id, expires_at) ON operator_tokens TO pva_api;

-- pva_admin: voucherctl.

-- voucherctl changes this row when it adopts a restored database.
GRANT SELECT, UPDATE (id, system_identifier, database_oid) ON deployment TO pva_admin;

-- The catalog mostly grows. In existing rows, only a brand's name, colour and logo, and a member's role can change.
GRANT SELECT ON organizations, brands, brand_logos, products, batches, batch_windows, listings, members, referrer_contracts, referral_links
   TO pva_admin;
GRANT INSERT (id, name, sandbox), UPDATE (time_zone) ON organizations TO pva_admin;
GRANT INSERT (id, organization_id, name), UPDATE (name, colour) ON brands TO pva_admin;
GRANT INSERT (brand_id, name, content), UPDATE (name, content) ON brand_logos TO pva_admin;
GRANT INSERT (id, brand_id, key, name, type, retail_price_usd, price_usd, benefit_months, usage_unit_label) ON products TO pva_admin;
GRANT INSERT (id, product_id, audience, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months, usage_unit_label)
   ON batches TO pva_admin;
GRANT INSERT ON batch_windows TO pva_admin;
GRANT INSERT (organization_id, user_id, role), UPDATE (role) ON members TO pva_admin;

-- Keys are created, rotated and revoked.
GRANT SELECT ON api_keys, api_key_secrets, api_key_uses TO pva_admin;
GRANT INSERT (id, organization_id, label, scopes, allow_ips, expires_at, max_per_day, max_amount_per_day_usd),
      UPDATE (revoked_at, max_per_day, max_amount_per_day_usd) ON api_keys TO pva_admin;
GRANT INSERT (key_id, secret_hash), UPDATE (expires_at) ON api_key_secrets TO pva_admin;

-- Operators are created and revoked, and their tokens are rotated.
GRANT SELECT ON operators, operator_tokens TO pva_admin;
GRANT INSERT (id, name, role, expires_at), UPDATE (revoked_at) ON operators TO pva_admin;
GRANT INSERT (operator_id, token_hash), UPDATE (expires_at) ON operator_tokens TO pva_admin;

-- Vouchers are issued with their first event, shown, extended, suspended and voided. Voiding ends a live reservation.
-- Without Redis, voucherctl itself seals the event of a voided voucher.
GRANT UPDATE (closed_until, clock_trusted_at) ON redemptions_closed TO pva_admin;
GRANT SELECT ON vouchers, reservations, redemptions, redemptions_closed, statements, reference_ends, reference_generation, voucher_events
   TO pva_admin;
GRANT INSERT (id, organization_id, batch_id, serial, last_sequence, sealed_sequence, code, code_key, sealed_hash, pickable)
   ON vouchers TO pva_admin;
GRANT UPDATE (status, pickable, last_sequence, sealed_sequence, sealed_hash, valid_until, expiry_due, suspension) ON vouchers TO pva_admin;
GRANT UPDATE (valid_until, issued_until, suspended_at, suspension_reason, suspension_due_at) ON batches TO pva_admin;
GRANT UPDATE (state, ended_at, end_reason) ON reservations TO pva_admin;
GRANT INSERT ON voucher_events TO pva_admin;
GRANT UPDATE (seal_status, previous_hash, record_hash, payload, log_slot) ON voucher_events TO pva_admin;
GRANT INSERT (id, leaves, hashes) ON log_batches TO pva_admin;
GRANT USAGE ON SEQUENCE log_batch_ids TO pva_admin;

-- Histories show each event's leaf in the log. Audit entries contain the log's size.
GRANT SELECT ON log_tree, log_published, log_batches TO pva_admin;
-- voucherctl records that an operator accepts a loss of commits.
GRANT INSERT (accepted_at) ON accepted_losses TO pva_admin;

-- The transaction that issues a batch also inserts the organization's reference.
GRANT SELECT, INSERT (organization_id, issue_ref, batch_id, terms) ON issue_references TO pva_admin;

-- Submitted forms of the operator pages are recorded, so that each form acts only once.
GRANT SELECT, INSERT (token, command, arguments, entity_id) ON sent_forms TO pva_admin;

-- Audit entries are inserted and read. A trigger sets their time and role. When a key reads further codes of a batch,
-- `count_codes_read` adds them to the count in the key's entry.
GRANT SELECT ON audit_entries TO pva_admin;
GRANT EXECUTE ON FUNCTION count_codes_read(text, text, integer) TO pva_admin;
GRANT INSERT (os_user, host, by, command, arguments, entity_type, entity_id, before, after) ON audit_entries TO pva_admin;
