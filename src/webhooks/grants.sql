-- The rights that the statements of webhooks need in addition to those of the core.

GRANT EXECUTE ON FUNCTION signing_versions(webhook_endpoints) TO pva_api, pva_admin;

-- The worker turns rows of the outbox into deliveries, attempts these, and deletes them after some time.
GRANT SELECT, DELETE ON webhook_outbox TO pva_api;
GRANT SELECT, INSERT, DELETE ON webhook_deliveries TO pva_api;
GRANT UPDATE (state, attempts, next_attempt_at, last_status, last_failure, finished_at, replayed_at) ON webhook_deliveries TO pva_api;
-- Partners manage their webhook endpoints. A deleted endpoint no longer counts toward the maximum. The sweeper deletes
-- its deliveries and then its row.
GRANT DELETE ON webhook_endpoints TO pva_api;
GRANT INSERT (id, organization_id, place, url, description, event_types, enabled, disabled_reason, disabled_at) ON webhook_endpoints TO pva_api;
GRANT UPDATE (place, url, description, event_types, enabled, disabled_reason, disabled_at, secret_version, previous_secrets_until, failing_since,
              failures, deleted_at)
   ON webhook_endpoints TO pva_api;

-- Operators create, disable and enable endpoints, rotate their secrets, and list and replay deliveries.
GRANT INSERT (id, organization_id, place, url, description, event_types, enabled, disabled_reason, disabled_at) ON webhook_endpoints TO pva_admin;
GRANT UPDATE (enabled, disabled_reason, disabled_at, failing_since, failures, secret_version, previous_secrets_until) ON webhook_endpoints TO pva_admin;
GRANT SELECT, UPDATE (state, attempts, next_attempt_at, finished_at, replayed_at) ON webhook_deliveries TO pva_admin;
