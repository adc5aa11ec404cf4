-- name: insert_webhook_endpoint(id, organization_id, url, description, event_types, enabled, places)
-- Inserts an endpoint into a random free place among the organization's places. Inserts no row if no place is free, or
-- if another transaction has taken the place. Only a partner creates a disabled endpoint.
INSERT INTO webhook_endpoints (id, organization_id, place, url, description, event_types, enabled, disabled_reason, disabled_at)
SELECT $1::text, $2::text, free.place, $3::text, $4::text, $5::text[], $6::boolean,
       CASE WHEN NOT $6::boolean THEN 'partner' END, CASE WHEN NOT $6::boolean THEN date_trunc('milliseconds', clock_timestamp()) END
  FROM (SELECT p.place FROM generate_series(1, $7::int) AS p (place)
         WHERE NOT EXISTS (SELECT 1 FROM webhook_endpoints AS w WHERE w.organization_id = $2::text AND w.place = p.place)
         ORDER BY random() LIMIT 1) AS free
    ON CONFLICT (organization_id, place) DO NOTHING;

-- name: select_webhook_endpoints(organization_id)
-- An organization's endpoints, oldest first. There are few, because each takes one of the organization's places.
SELECT w.id, w.organization_id AS "organizationId", w.url, w.description, w.event_types AS "eventTypes", w.enabled,
       w.disabled_reason AS "disabledReason", w.disabled_at AS "disabledAt", w.failing_since AS "failingSince",
       CASE WHEN w.previous_secrets_until[1] > clock_timestamp() THEN w.previous_secrets_until[1] END AS "previousSecretUntil",
       signing_versions(w) AS "signingVersions", w.created_at AS "createdAt", date_trunc('milliseconds', clock_timestamp()) AS "readAt"
  FROM webhook_endpoints AS w WHERE w.organization_id = $1::text AND w.deleted_at IS NULL ORDER BY w.created_at, w.id;

-- name: list_webhook_endpoints(after, limit)
-- Endpoints of all organizations in id order, for operators.
SELECT w.id, w.url, w.disabled_reason AS "disabledReason", w.failing_since AS "failingSince", w.organization_id AS "organizationId", o.name AS organization
  FROM webhook_endpoints AS w JOIN organizations AS o ON o.id = ANY (ARRAY[w.organization_id])
 WHERE w.id > $1::text AND w.deleted_at IS NULL ORDER BY w.id LIMIT $2::int;

-- name: find_organization_of_webhook(id)
-- The organization of an endpoint. Only for operators, because only they may use an endpoint by its id alone.
SELECT w.organization_id AS "organizationId" FROM webhook_endpoints AS w WHERE w.id = $1::text AND w.deleted_at IS NULL;

-- name: change_webhook_endpoint(id, organization_id, url?, description?, event_types?)
-- Changes the columns whose parameter is not null. A new URL clears failing_since and failures. Returns no row if there
-- is no such endpoint.
UPDATE webhook_endpoints AS w
   SET url = coalesce($3::text, w.url), description = coalesce($4::text, w.description), event_types = coalesce($5::text[], w.event_types),
       failing_since = CASE WHEN coalesce($3::text, w.url) = w.url THEN w.failing_since END,
       failures = CASE WHEN coalesce($3::text, w.url) = w.url THEN w.failures ELSE 0 END
 WHERE w.id = $1::text AND (w.organization_id = $2::text) IS TRUE AND w.deleted_at IS NULL;

-- name: enable_webhook_endpoint(id, by_operator)
-- Enables a disabled endpoint. Returns no row if it is already enabled, or if an operator disabled it and by_operator
-- is false.
UPDATE webhook_endpoints AS w SET enabled = true, disabled_reason = NULL, disabled_at = NULL, failing_since = NULL, failures = 0
 WHERE w.id = $1::text AND w.deleted_at IS NULL AND NOT w.enabled AND ($2::boolean OR w.disabled_reason <> 'operator');

-- name: disable_webhook_endpoint(id, disabled_reason)
-- Disables an enabled endpoint. If it is already disabled, the reason 'operator' replaces any other reason. Otherwise
-- returns no row.
UPDATE webhook_endpoints AS w
   SET enabled = false, disabled_reason = $2::text, disabled_at = date_trunc('milliseconds', statement_timestamp())
 WHERE w.id = $1::text AND w.deleted_at IS NULL AND (w.enabled OR ($2::text = 'operator' AND w.disabled_reason <> 'operator'));

-- name: rotate_webhook_secret(id, organization_id, hours, secrets_max)
-- Begins the next version of an endpoint's secret. The replaced version also signs, for the given number of hours.
-- Returns no row if secrets_max earlier versions still sign.
UPDATE webhook_endpoints AS w
   SET secret_version = w.secret_version + 1,
       previous_secrets_until = (date_trunc('milliseconds', statement_timestamp()) + make_interval(hours => $3::int)) || w.previous_secrets_until[:$4::int - 1]
 WHERE w.id = $1::text AND (w.organization_id = $2::text) IS TRUE AND w.deleted_at IS NULL
   AND (w.previous_secrets_until[$4::int] > clock_timestamp()) IS NOT TRUE
RETURNING w.id, w.secret_version AS "secretVersion", w.previous_secrets_until[1] AS "previousSecretUntil";

-- name: delete_webhook_endpoint(id, organization_id)
-- Marks an endpoint as deleted and frees its place. The sweeper later deletes its deliveries and then the row.
UPDATE webhook_endpoints AS w
   SET deleted_at = statement_timestamp(), place = NULL, enabled = false, disabled_reason = coalesce(w.disabled_reason, 'partner'),
       disabled_at = coalesce(w.disabled_at, date_trunc('milliseconds', statement_timestamp()))
 WHERE w.id = $1::text AND (w.organization_id = $2::text) IS TRUE AND w.deleted_at IS NULL;

-- name: select_failing_endpoints(failures, limit)
-- Endpoints with at least this many consecutive failed attempts, and endpoints that were disabled because of failures.
SELECT w.id, w.url, o.name AS organization, coalesce(w.disabled_at, w.failing_since) AS since, w.enabled
  FROM webhook_endpoints AS w JOIN organizations AS o ON o.id = ANY (ARRAY[w.organization_id])
 WHERE w.deleted_at IS NULL AND (w.disabled_reason IN ('gone', 'failing') OR (w.enabled AND w.failures = $1::int))
 ORDER BY w.id LIMIT $2::int;
