-- name: insert_sealed_events(voucher_id, sequence, event_type, occurred_at, actor_connected_id?, actor_is_employee?, previous_hash,
--       record_hash, payload, log_slot)
-- Appends sealed events to chains of locked vouchers.
INSERT INTO voucher_events (occurred_at, sequence, actor_is_employee, voucher_id, seal_status, event_type, actor_connected_id,
                            previous_hash, record_hash, payload, log_slot)
SELECT w.occurred_at, w.sequence, w.actor_is_employee, w.voucher_id, 'Sealed', w.event_type, w.actor_connected_id,
       decode(w.previous_hash, 'hex'), decode(w.record_hash, 'hex'), w.payload, w.log_slot
  FROM unnest($1::text[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::boolean[], $7::text[], $8::text[], $9::text[],
              $10::bigint[])
       AS w (voucher_id, sequence, event_type, occurred_at, actor_connected_id, actor_is_employee, previous_hash, record_hash,
             payload, log_slot);

-- name: insert_pending_events(voucher_id, sequence, event_type, occurred_at, actor_connected_id?, actor_is_employee?, data)
-- Appends Pending events, which are sealed later, to chains of locked vouchers.
INSERT INTO voucher_events (occurred_at, sequence, actor_is_employee, voucher_id, seal_status, event_type, actor_connected_id, data)
SELECT w.occurred_at, w.sequence, w.actor_is_employee, w.voucher_id, 'Pending', w.event_type, w.actor_connected_id, w.data::json
  FROM unnest($1::text[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::boolean[], $7::text[])
       AS w (voucher_id, sequence, event_type, occurred_at, actor_connected_id, actor_is_employee, data);

-- name: select_pending_events(voucher_id)
-- The Pending events of locked vouchers, in the order in which they must be sealed.
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee", e.data
  FROM voucher_events AS e WHERE e.voucher_id = ANY ($1::text[]) AND e.record_hash IS NULL ORDER BY e.voucher_id, e.sequence;

-- name: select_overdue_seals(age_ms, limit)
-- The vouchers whose events have been Pending for longer than age_ms, oldest first.
SELECT e.voucher_id AS "voucherId" FROM voucher_events AS e
 WHERE e.seal_status = 'Pending' AND e.occurred_at < (SELECT clock_timestamp() - make_interval(secs => $1::int / 1000.0))
 ORDER BY e.occurred_at LIMIT $2::int;

-- name: find_oldest_pending_age
-- Age of the oldest Pending event in milliseconds. 0 if there is none.
SELECT coalesce((SELECT (extract(epoch FROM clock_timestamp() - e.occurred_at) * 1000)::bigint
                   FROM voucher_events AS e WHERE e.seal_status = 'Pending' ORDER BY e.occurred_at LIMIT 1), 0) AS "ageMs";

-- name: seal_events(voucher_id, sequence, previous_hash, record_hash, payload, log_slot)
-- Seals Pending events of locked vouchers. Raises VS001 if one of them is already sealed.
WITH sealed AS (
  UPDATE voucher_events AS e
     SET seal_status = 'Sealed', previous_hash = decode(w.previous_hash, 'hex'), record_hash = decode(w.record_hash, 'hex'),
         payload = w.payload, log_slot = w.log_slot
    FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::bigint[])
         AS w (voucher_id, sequence, previous_hash, record_hash, payload, log_slot)
   WHERE e.voucher_id = ANY (ARRAY[w.voucher_id]) AND e.sequence = w.sequence AND e.record_hash IS NULL
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Pending events') FROM sealed;

-- name: select_events_page(voucher_id, after, limit)
-- Events of one voucher after a sequence, in order. logIndex is null until the served checkpoint contains the leaf.
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.seal_status AS "sealStatus", e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee",
       encode(e.previous_hash, 'hex') AS "previousHash", encode(e.record_hash, 'hex') AS "recordHash", e.payload,
       e.erased_by AS "erasedBy",
       (SELECT l.index FROM log_batches AS b, log_published AS p,
               LATERAL (SELECT log_index_of(b.first_index, b.places, e.log_slot) AS index) AS l
         WHERE b.id = e.log_slot >> 12 AND p.one AND l.index < p.size) AS "logIndex"
  FROM voucher_events AS e WHERE e.voucher_id = $1::text AND e.sequence > $2::int ORDER BY e.sequence LIMIT $3::int;

-- name: find_logged_event(voucher_id, sequence)
-- The payload, hash and leaf index of one event of a voucher. Payload and hash are null while the event is Pending. The
-- payload is null after the event was erased. The leaf index is null until the event has a position in the log. The
-- served checkpoint may not contain it yet.
SELECT e.voucher_id AS "voucherId", e.sequence, e.payload, e.record_hash AS "recordHash",
       log_index_of(b.first_index, b.places, e.log_slot) AS "logIndex"
  FROM voucher_events AS e LEFT JOIN log_batches AS b ON b.id = ANY (ARRAY[e.log_slot >> 12])
 WHERE e.voucher_id = $1::text AND e.sequence = $2::int;

-- name: find_logged_redemption(organization_id, external_ref)
-- Like find_logged_event, for the redeemed event of the redemption under an organization's reference.
SELECT e.voucher_id AS "voucherId", e.sequence, e.payload, e.record_hash AS "recordHash",
       log_index_of(b.first_index, b.places, e.log_slot) AS "logIndex"
  FROM redemptions_under($1::text, $2::text) AS rd
  JOIN voucher_events AS e ON e.voucher_id = ANY (ARRAY[rd.voucher_id]) AND e.event_type = 'voucher.instance.redeemed'
  LEFT JOIN log_batches AS b ON b.id = ANY (ARRAY[e.log_slot >> 12]);

-- name: select_events_of_range(after, last)
-- All events of the vouchers in an id range, in chain order.
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.seal_status AS "sealStatus", e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee",
       encode(e.previous_hash, 'hex') AS "previousHash", encode(e.record_hash, 'hex') AS "recordHash", e.payload,
       e.erased_by AS "erasedBy"
  FROM voucher_events AS e WHERE e.voucher_id > $1::text AND e.voucher_id <= $2::text ORDER BY e.voucher_id, e.sequence;

-- name: select_logged_in_order
-- The hashes of all sealed events in the order of their leaves. isErased is null for an event with a payload. For an
-- event without a payload, it is true if a later sealed event proves the erasure: that event has an intact payload,
-- which lists this event and only events before itself. Events without a leaf come last. The result is large, so read
-- it with a cursor. Postgres sorts it in temporary files.
SELECT e.voucher_id AS "voucherId", e.sequence, e.record_hash AS "recordHash", e.log_slot IS NOT NULL AS "hasSlot",
       CASE WHEN e.payload IS NULL
            THEN EXISTS (SELECT FROM voucher_events AS t
                          WHERE t.voucher_id = e.voucher_id AND t.sequence = e.erased_by AND t.sequence > e.sequence
                            AND t.event_type = 'voucher.instance.erased' AND t.seal_status = 'Sealed'
                            -- Parses only payloads with the right hash, because a changed payload may be invalid JSON.
                            AND CASE WHEN sha256(convert_to(t.payload, 'UTF8')) = t.record_hash
                                     THEN t.payload::jsonb ->> 'eventType' = t.event_type
                                          AND (t.payload::jsonb #> '{data,erasedSequences}') @> to_jsonb(e.sequence)
                                          AND NOT jsonb_path_exists(
                                                t.payload::jsonb,
                                                '$.data.erasedSequences[*] ? (@ >= $by || (@ < $by) is unknown)',
                                                jsonb_build_object('by', t.sequence)) END) END AS "isErased",
       log_index_of(b.first_index, b.places, e.log_slot) AS "logIndex",
       substr(b.hashes, (e.log_slot & 4095)::int * 32 + 1, 32) AS "waitingHash"
  FROM voucher_events AS e LEFT JOIN log_batches AS b ON b.id = e.log_slot >> 12
 WHERE e.seal_status = 'Sealed' ORDER BY "logIndex" NULLS LAST;

-- name: select_unlogged_events(after_voucher_id, after_sequence, limit)
-- The next sealed events that belong to no leaf batch, in order of voucher and sequence.
SELECT e.voucher_id AS "voucherId", e.sequence, encode(e.record_hash, 'hex') AS "recordHash"
  FROM voucher_events AS e
 WHERE (e.voucher_id, e.sequence) > ($1::text, $2::int) AND e.seal_status = 'Sealed' AND e.log_slot IS NULL
 ORDER BY e.voucher_id, e.sequence LIMIT $3::int;

-- name: write_log_slots(voucher_id, sequence, log_slot)
-- Sets the log_slot of sealed events: their leaf batch's id and their position in it. Raises VS001 if one is set.
WITH logged AS (
  UPDATE voucher_events AS e SET log_slot = w.log_slot
    FROM unnest($1::text[], $2::int[], $3::bigint[]) AS w (voucher_id, sequence, log_slot)
   WHERE e.voucher_id = ANY (ARRAY[w.voucher_id]) AND e.sequence = w.sequence AND e.log_slot IS NULL
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'events without a position in the log') FROM logged;

-- name: select_canon_preserved_since
-- The time since which this deployment stores the exact event payloads.
SELECT d.canon_preserved_since AS "canonPreservedSince" FROM deployment AS d;

-- name: next_log_batch
-- The id of a new leaf batch. Must run after the transaction has locked the vouchers of the batch's events. The ids of
-- batches then follow the order of each voucher's events.
SELECT nextval('log_batch_ids') AS id;

-- name: insert_log_batch(id, leaves, hashes)
-- Adds the leaves of a transaction. They wait in this table for their positions in the log. A hash has 32 bytes.
INSERT INTO log_batches (id, leaves, hashes) VALUES ($1::bigint, $2::int, $3::bytea);
