-- name: try_fan_out
-- Tries to take the lock of the fan-out until the transaction ends. Only one process at a time has it, so the
-- deliveries of a voucher appear in the order of its events.
SELECT pg_try_advisory_xact_lock(21093::bigint << 48) AS locked;

-- name: select_outbox(except, limit)
-- The oldest rows of the outbox, except rows of some organizations, and the number of events in each row.
SELECT o.id, o.organization_id AS "organizationId", cardinality(o.voucher_ids) AS events
  FROM webhook_outbox AS o WHERE o.id > 0 AND o.organization_id <> ALL ($1::text[]) ORDER BY o.id LIMIT $2::int;

-- name: select_outbox_of(organization_id, limit)
-- The oldest outbox rows of one organization, with the number of events in each row.
SELECT o.id, o.organization_id AS "organizationId", cardinality(o.voucher_ids) AS events
  FROM webhook_outbox AS o WHERE o.id > 0 AND o.organization_id = $1::text ORDER BY o.id LIMIT $2::int;

-- name: lock_endpoints_of(organization_id)
-- Locks the enabled endpoints of one organization, in id order. Waits if others have locked them.
SELECT FROM webhook_endpoints AS e
 WHERE e.id = ANY (ARRAY(SELECT n.id FROM webhook_endpoints AS n WHERE n.organization_id = $1::text AND n.enabled)) AND e.enabled
 ORDER BY e.id FOR NO KEY UPDATE;

-- name: lock_free_endpoints_of(organization_id)
-- Locks the enabled endpoints of organizations. Skips endpoints that another transaction has locked. A transaction may
-- lock the same endpoint again.
SELECT e.id FROM webhook_endpoints AS e
 WHERE e.id = ANY (ARRAY(SELECT n.id FROM webhook_endpoints AS n WHERE n.organization_id = ANY ($1::text[]) AND n.enabled)) AND e.enabled
 FOR NO KEY UPDATE SKIP LOCKED;

-- name: select_enabled_endpoints_of(organization_id)
-- The enabled endpoints of organizations, including locked ones.
SELECT e.id, e.organization_id AS "organizationId" FROM webhook_endpoints AS e WHERE e.organization_id = ANY ($1::text[]) AND e.enabled;

-- name: insert_deliveries(outbox_id, endpoint_id, row_events_max, latest?)
-- Makes one delivery for each event and each locked endpoint that subscribes to it. Returns the endpoints with due
-- deliveries. A delivery waits until all earlier deliveries of the same voucher to the same endpoint are finished.
WITH made AS (
  INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, sequence, endpoint_id, event_id, voucher_id, ticket, event_type)
  SELECT n.position, n.created_at,
         CASE WHEN n.turn = 1 AND (SELECT p.position FROM webhook_deliveries AS p WHERE p.endpoint_id = n.endpoint_id
                                  AND p.voucher_id = n.voucher_id AND p.finished_at IS NULL ORDER BY p.position LIMIT 1) IS NULL
              THEN least(clock_timestamp(), $4::timestamptz) END,
         n.sequence, n.endpoint_id, n.event_id, n.voucher_id, n.ticket, n.event_type
    FROM (SELECT o.id * $3::bigint + w.n - 1 AS position, o.created_at, w.sequence, t.id AS endpoint_id, w.voucher_id, w.ticket,
                 s.event_type,
                 w.voucher_id || '-' || coalesce(w.sequence::text, 'r' || (extract(epoch FROM r.expires_at) * 1000)::bigint) AS event_id,
                 row_number() OVER (PARTITION BY t.id, w.voucher_id ORDER BY o.id, w.n) AS turn
            FROM unnest($1::bigint[]) AS i (id)
            JOIN webhook_outbox AS o ON o.id = ANY (ARRAY[i.id])
           CROSS JOIN LATERAL unnest(o.voucher_ids, o.sequences, o.tickets) WITH ORDINALITY AS w (voucher_id, sequence, ticket, n)
            LEFT JOIN voucher_events AS e ON e.voucher_id = ANY (ARRAY[w.voucher_id]) AND e.sequence = w.sequence
            LEFT JOIN reservations AS r ON r.ticket = ANY (ARRAY[w.ticket])
           -- Webhooks omit `instance.` in the names of event types that NAMED_AS_IN_CHAIN (webhooks.ts) does not match.
           CROSS JOIN LATERAL (SELECT CASE WHEN e.event_type IN ('voucher.instance.redeemed', 'voucher.instance.voided', 'voucher.instance.expired',
                                                                 'voucher.instance.claimed', 'voucher.instance.bought') THEN e.event_type
                                      ELSE coalesce(replace(e.event_type, '.instance.', '.'), 'reservation.expired') END AS event_type) AS s
           CROSS JOIN LATERAL (SELECT l.* FROM webhook_endpoints AS l WHERE l.id = ANY ($2::text[]) OFFSET 0) AS t
           WHERE t.organization_id = o.organization_id
             -- The reservation may have been deleted if the outbox was not read for a month. Its event then gets no
             -- delivery.
             AND (w.ticket IS NULL OR r.ticket IS NOT NULL)
             AND (t.event_types = '{}' OR s.event_type = ANY (t.event_types))) AS n
      ON CONFLICT (endpoint_id, event_id) DO NOTHING
  RETURNING endpoint_id, next_attempt_at
)
SELECT DISTINCT m.endpoint_id AS "endpointId" FROM made AS m WHERE m.next_attempt_at IS NOT NULL;

-- name: delete_outbox(id)
-- Deletes outbox rows whose deliveries this transaction has made.
DELETE FROM webhook_outbox AS o WHERE o.id = ANY ($1::bigint[]);

-- name: find_target(endpoint_id)
-- The data for requests to an enabled endpoint, and the database's time. No row if the endpoint is disabled or deleted.
SELECT e.id, e.organization_id AS "organizationId", e.url, signing_versions(e) AS "signingVersions",
       e.failing_since IS NOT NULL AS "isFailing", clock_timestamp() AS now,
       (SELECT o.sandbox FROM organizations AS o WHERE o.id = e.organization_id) AS sandbox
  FROM webhook_endpoints AS e WHERE e.id = $1::text AND (e.enabled) IS NOT FALSE;

-- name: select_due_deliveries(endpoint_id, except, limit, latest?)
-- The deliveries of an endpoint that have been due for longest, with the contents of their bodies.
SELECT d.event_id AS "eventId", d.voucher_id AS "voucherId", d.sequence, d.event_type AS "eventType", d.attempts,
       d.replayed_at IS NOT NULL AS "isReplay", (extract(epoch FROM clock_timestamp() - d.created_at) * 1000)::bigint AS "ageMs",
       e.occurred_at AS "occurredAt", encode(e.record_hash, 'hex') AS "recordHash",
       e.payload, r.started_at AS "startedAt", r.expires_at AS "expiresAt"
  FROM (SELECT p.* FROM webhook_deliveries AS p
         WHERE p.endpoint_id = $1::text AND p.next_attempt_at <= (SELECT least(clock_timestamp(), $4::timestamptz)) AND p.event_id <> ALL ($2::text[])
         ORDER BY p.next_attempt_at LIMIT $3::int) AS d
  LEFT JOIN voucher_events AS e ON e.voucher_id = ANY (ARRAY[d.voucher_id]) AND e.sequence = d.sequence
  LEFT JOIN reservations AS r ON r.ticket = ANY (ARRAY[d.ticket]);

-- name: lock_endpoints(endpoint_id)
-- Locks endpoints, in id order.
SELECT FROM webhook_endpoints AS e WHERE e.id = ANY ($1::text[]) ORDER BY e.id FOR NO KEY UPDATE;

-- name: lock_free_endpoints(endpoint_id)
-- Locks endpoints. Skips endpoints that another transaction has locked.
SELECT e.id FROM webhook_endpoints AS e WHERE e.id = ANY ($1::text[]) FOR NO KEY UPDATE SKIP LOCKED;

-- name: read_endpoints(endpoint_id)
-- The state of endpoints, and the current time. A transaction that changes endpoints must first lock them.
SELECT e.id, e.organization_id AS "organizationId", e.enabled, e.failing_since AS "failingSince", e.failures, clock.now
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now OFFSET 0) AS clock, webhook_endpoints AS e WHERE e.id = ANY ($1::text[]);

-- name: record_attempts(now, endpoint_id, event_id, attempts, state, status?, failure?, next_attempt_at?)
-- Records attempts of deliveries to locked endpoints. Skips a delivery that another process has attempted since it was
-- read. If an event was erased meanwhile, makes its delivery due at once. The next run then ends the delivery without
-- sending it.
UPDATE webhook_deliveries AS d
   SET attempts = d.attempts + CASE WHEN w.state = 'Erased' THEN 0 ELSE 1 END, state = w.state,
       last_status = w.status, last_failure = w.failure,
       next_attempt_at = CASE WHEN w.next_attempt_at > $1::timestamptz
                               AND (SELECT e.erased_by IS NOT NULL FROM voucher_events AS e
                                     WHERE e.voucher_id = d.voucher_id AND e.sequence = d.sequence)
                              THEN $1::timestamptz ELSE w.next_attempt_at END,
       finished_at = CASE WHEN w.state <> 'Pending' THEN $1::timestamptz END
  FROM unnest($2::text[], $3::text[], $4::int[], $5::text[], $6::int[], $7::text[], $8::timestamptz[])
       AS w (endpoint_id, event_id, attempts, state, status, failure, next_attempt_at)
 WHERE d.endpoint_id = ANY (ARRAY[w.endpoint_id]) AND d.event_id = w.event_id AND (d.finished_at IS NULL) IS NOT FALSE AND d.attempts = w.attempts;

-- name: release_next(now, endpoint_id, voucher_id)
-- For each pair of a locked endpoint and a voucher, makes the earliest unfinished delivery due if it waits for an
-- earlier one.
UPDATE webhook_deliveries AS d SET next_attempt_at = $1::timestamptz
  FROM unnest($2::text[], $3::text[]) AS w (endpoint_id, voucher_id)
 CROSS JOIN LATERAL (SELECT p.event_id, p.next_attempt_at FROM webhook_deliveries AS p
                      WHERE p.endpoint_id = w.endpoint_id AND p.voucher_id = w.voucher_id AND p.finished_at IS NULL
                      ORDER BY p.position LIMIT 1) AS head
 WHERE d.endpoint_id = ANY (ARRAY[w.endpoint_id]) AND d.event_id = head.event_id AND head.next_attempt_at IS NULL;

-- name: record_health(now, endpoint_id, failing_since?, disabled_reason?, failures)
-- For locked endpoints, records since when and how often in a row they have failed. Disables those with a
-- disabled_reason.
UPDATE webhook_endpoints AS e
   SET failing_since = w.failing_since, failures = w.failures, enabled = e.enabled AND w.reason IS NULL,
       disabled_reason = coalesce(e.disabled_reason, w.reason),
       disabled_at = CASE WHEN e.enabled AND w.reason IS NOT NULL THEN $1::timestamptz ELSE e.disabled_at END
  FROM unnest($2::text[], $3::timestamptz[], $4::text[], $5::smallint[]) AS w (id, failing_since, reason, failures)
 WHERE e.id = ANY (ARRAY[w.id]);

-- name: read_is_erased(voucher_id, sequence)
-- Whether a sealed event was erased.
SELECT e.payload IS NULL AS "isErased" FROM voucher_events AS e WHERE e.voucher_id = $1::text AND e.sequence = $2::int;

-- name: select_endpoints_with_due(limit, latest?)
-- Enabled endpoints with deliveries that are due.
SELECT e.id AS "endpointId" FROM webhook_endpoints AS e
 WHERE e.enabled AND (SELECT true FROM webhook_deliveries AS d
                       WHERE d.endpoint_id = e.id AND d.next_attempt_at <= (SELECT least(clock_timestamp(), $2::timestamptz)) LIMIT 1)
 LIMIT $1::int;

-- name: lock_disabled_endpoint
-- Locks one disabled endpoint that has Pending deliveries.
SELECT e.id FROM webhook_endpoints AS e
 WHERE NOT e.enabled AND (SELECT true FROM webhook_deliveries AS d WHERE d.endpoint_id = e.id AND d.finished_at IS NULL LIMIT 1)
 LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;

-- name: end_pending_deliveries(endpoint_id, limit)
-- Ends Pending deliveries of a locked, disabled endpoint. For each voucher, ends later deliveries first, so that no
-- remaining delivery has to become due.
UPDATE webhook_deliveries AS d SET state = 'Failed', next_attempt_at = NULL, finished_at = date_trunc('milliseconds', statement_timestamp())
  FROM (SELECT p.event_id FROM webhook_deliveries AS p WHERE p.endpoint_id = $1::text AND p.finished_at IS NULL
         ORDER BY p.voucher_id DESC, p.position DESC LIMIT $2::int) AS w
 WHERE d.endpoint_id = $1::text AND d.event_id = ANY (ARRAY[w.event_id]);

-- name: delete_old_deliveries(days, limit, latest?)
-- Deletes finished deliveries that are older than the given age, and all finished deliveries of deleted endpoints.
DELETE FROM webhook_deliveries AS d
 USING (SELECT o.endpoint_id, o.event_id
          FROM webhook_endpoints AS e CROSS JOIN (VALUES ('Delivered'), ('Failed'), ('Erased')) AS s (state)
         CROSS JOIN LATERAL (SELECT l.endpoint_id, l.event_id FROM webhook_deliveries AS l
                              WHERE l.endpoint_id = e.id AND l.state = s.state
                                AND l.created_at < CASE WHEN e.deleted_at IS NULL
                                                        THEN least(clock_timestamp(), $3::timestamptz) - make_interval(days => $1::int) ELSE 'infinity' END
                              ORDER BY l.created_at LIMIT $2::int) AS o
         LIMIT $2::int) AS w
 WHERE d.endpoint_id = ANY (ARRAY[w.endpoint_id]) AND d.event_id = w.event_id AND (d.finished_at IS NULL) IS NOT TRUE;

-- name: delete_deleted_endpoints
-- Deletes the rows of deleted endpoints that have no deliveries left.
DELETE FROM webhook_endpoints AS e
 WHERE e.deleted_at IS NOT NULL AND NOT EXISTS (SELECT FROM webhook_deliveries AS d WHERE d.endpoint_id = e.id OFFSET 0);

-- name: select_deliveries(endpoint_id, state, before, before_event_id, limit)
-- An endpoint's deliveries in the given states, before a time and an event, newest first.
SELECT p.event_id AS "eventId", p.event_type AS "eventType", p.voucher_id AS "voucherId", p.sequence, p.state, p.attempts,
       p.next_attempt_at AS "nextAttemptAt", p.last_status AS "lastStatus", p.last_failure AS "lastFailure", p.created_at AS "createdAt",
       p.finished_at AS "finishedAt"
  FROM unnest($2::text[]) AS s (state)
 CROSS JOIN LATERAL (SELECT d.* FROM webhook_deliveries AS d
                      WHERE d.endpoint_id = $1::text AND d.state = s.state AND (d.created_at, d.event_id) < ($3::timestamptz, $4::text)
                      ORDER BY d.created_at DESC, d.event_id DESC LIMIT $5::int) AS p
 ORDER BY p.created_at DESC, p.event_id DESC LIMIT $5::int;

-- name: select_replayable_by_time(endpoint_id, from, to, limit)
-- Finished deliveries of an endpoint whose events were written to the outbox in a given period, oldest first.
SELECT p.event_id AS "eventId", p.voucher_id AS "voucherId"
  FROM (VALUES ('Delivered'), ('Failed')) AS s (state)
 CROSS JOIN LATERAL (SELECT d.* FROM webhook_deliveries AS d
                      WHERE d.endpoint_id = $1::text AND d.state = s.state AND d.created_at >= $2::timestamptz AND d.created_at < $3::timestamptz
                      ORDER BY d.created_at, d.event_id LIMIT $4::int) AS p
 ORDER BY p.created_at, p.event_id LIMIT $4::int;

-- name: select_replayable_by_id(endpoint_id, event_id)
-- An endpoint's deliveries with the given ids, if they are finished.
SELECT d.event_id AS "eventId", d.voucher_id AS "voucherId" FROM webhook_deliveries AS d
 WHERE d.endpoint_id = $1::text AND d.event_id = ANY ($2::text[]) AND (d.finished_at IS NULL) IS NOT TRUE;

-- name: replay_deliveries(now, endpoint_id, event_id)
-- Makes finished deliveries of a locked endpoint Pending again. They wait until release_next makes them due.
UPDATE webhook_deliveries AS d
   SET state = 'Pending', attempts = 0, next_attempt_at = NULL, finished_at = NULL, replayed_at = $1::timestamptz
 WHERE d.endpoint_id = $2::text AND d.event_id = ANY ($3::text[]) AND (d.finished_at IS NULL) IS NOT TRUE;

-- name: wait_for_earlier(endpoint_id, voucher_id)
-- Makes deliveries of vouchers to a locked endpoint wait until all earlier deliveries of the same voucher are finished.
UPDATE webhook_deliveries AS d SET next_attempt_at = NULL
  FROM unnest($2::text[]) AS w (voucher_id)
 CROSS JOIN LATERAL (SELECT p.event_id FROM webhook_deliveries AS p
                      WHERE p.endpoint_id = $1::text AND p.voucher_id = w.voucher_id AND p.finished_at IS NULL
                      ORDER BY p.position OFFSET 1) AS later
 WHERE d.endpoint_id = $1::text AND d.event_id = ANY (ARRAY[later.event_id]) AND d.next_attempt_at IS NOT NULL;

-- name: measure_webhooks(limit)
-- The number of unfinished deliveries and the number of outbox rows, each up to the limit, and how long the oldest due
-- delivery has been due. This time ignores failing endpoints, whose deliveries are late because of the partners'
-- servers.
SELECT (SELECT count(*) FROM (SELECT FROM webhook_deliveries AS d WHERE d.finished_at IS NULL LIMIT $1::int) AS p)::int AS pending,
       (SELECT count(*) FROM (SELECT FROM webhook_outbox AS o LIMIT $1::int) AS p)::int AS outbox,
       coalesce((SELECT max(extract(epoch FROM clock_timestamp() - f.next_attempt_at) * 1000)
          FROM webhook_endpoints AS e
         CROSS JOIN LATERAL (SELECT d.next_attempt_at FROM webhook_deliveries AS d
                              WHERE d.endpoint_id = e.id AND d.next_attempt_at <= (SELECT clock_timestamp())
                              ORDER BY d.next_attempt_at LIMIT 1) AS f
         WHERE e.enabled AND e.failing_since IS NULL), 0)::bigint AS "oldestDueMs";
