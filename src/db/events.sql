-- name: insert_sealed_events
-- Appends sealed events to chains of locked vouchers.
-- $1 voucher_id text[], $2 sequence int[], $3 event_type text[], $4 occurred_at timestamptz[], $5 actor_connected_id text[],
-- $6 actor_is_employee boolean[], $7 previous_hash text[] hex, $8 record_hash text[] hex, $9 payload text[]
INSERT INTO voucher_events (occurred_at, sequence, actor_is_employee, voucher_id, seal_status, event_type, actor_connected_id,
                            previous_hash, record_hash, payload)
SELECT w.occurred_at, w.sequence, w.actor_is_employee, w.voucher_id, 'Sealed', w.event_type, w.actor_connected_id,
       decode(w.previous_hash, 'hex'), decode(w.record_hash, 'hex'), w.payload
  FROM unnest($1::text[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::boolean[], $7::text[], $8::text[], $9::text[])
       AS w (voucher_id, sequence, event_type, occurred_at, actor_connected_id, actor_is_employee, previous_hash, record_hash,
             payload);

-- name: insert_pending_events
-- Appends Pending events, which are sealed later, to chains of locked vouchers.
-- $1 voucher_id text[], $2 sequence int[], $3 event_type text[], $4 occurred_at timestamptz[], $5 actor_connected_id text[],
-- $6 actor_is_employee boolean[], $7 data text[] json
INSERT INTO voucher_events (occurred_at, sequence, actor_is_employee, voucher_id, seal_status, event_type, actor_connected_id, data)
SELECT w.occurred_at, w.sequence, w.actor_is_employee, w.voucher_id, 'Pending', w.event_type, w.actor_connected_id, w.data::json
  FROM unnest($1::text[], $2::int[], $3::text[], $4::timestamptz[], $5::text[], $6::boolean[], $7::text[])
       AS w (voucher_id, sequence, event_type, occurred_at, actor_connected_id, actor_is_employee, data);

-- name: select_pending_events
-- The Pending events of locked vouchers, in the order in which they must be sealed.
-- $1 voucher_id text[]
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee", e.data
  FROM voucher_events AS e WHERE e.voucher_id = ANY ($1::text[]) AND e.record_hash IS NULL ORDER BY e.voucher_id, e.sequence;

-- name: select_overdue_seals
-- The vouchers of events that have been Pending for longer than an age, oldest first.
-- $1 age int in milliseconds, $2 limit int
SELECT e.voucher_id AS "voucherId" FROM voucher_events AS e
 WHERE e.seal_status = 'Pending' AND e.occurred_at < (SELECT clock_timestamp() - make_interval(secs => $1::int / 1000.0))
 ORDER BY e.occurred_at LIMIT $2::int;

-- name: find_oldest_pending_age
-- Age of the oldest Pending event in milliseconds. No row when there is none.
SELECT (extract(epoch FROM clock_timestamp() - e.occurred_at) * 1000)::bigint AS "ageMs"
  FROM voucher_events AS e WHERE e.seal_status = 'Pending' ORDER BY e.occurred_at LIMIT 1;

-- name: seal_events
-- Seals Pending events of locked vouchers. Raises VS001 when one is already sealed.
-- $1 voucher_id text[], $2 sequence int[], $3 previous_hash text[] hex, $4 record_hash text[] hex, $5 payload text[]
WITH sealed AS (
  UPDATE voucher_events AS e
     SET seal_status = 'Sealed', previous_hash = decode(w.previous_hash, 'hex'), record_hash = decode(w.record_hash, 'hex'),
         payload = w.payload
    FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[])
         AS w (voucher_id, sequence, previous_hash, record_hash, payload)
   WHERE e.voucher_id = ANY (ARRAY[w.voucher_id]) AND e.sequence = w.sequence AND e.record_hash IS NULL
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'Pending events') FROM sealed;

-- name: select_events_page
-- Events of one voucher with a greater sequence, in order.
-- $1 voucher_id text, $2 sequence int (exclusive), $3 limit int
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.seal_status AS "sealStatus", e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee",
       encode(e.previous_hash, 'hex') AS "previousHash", encode(e.record_hash, 'hex') AS "recordHash", e.payload
  FROM voucher_events AS e WHERE e.voucher_id = $1::text AND e.sequence > $2::int ORDER BY e.sequence LIMIT $3::int;

-- name: select_events_of_range
-- All events of the vouchers in an id range, in chain order.
-- $1 after voucher_id text (exclusive), $2 last voucher_id text
SELECT e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.seal_status AS "sealStatus", e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee",
       encode(e.previous_hash, 'hex') AS "previousHash", encode(e.record_hash, 'hex') AS "recordHash", e.payload
  FROM voucher_events AS e WHERE e.voucher_id > $1::text AND e.voucher_id <= $2::text ORDER BY e.voucher_id, e.sequence;

-- name: select_canon_preserved_since
-- Since when this deployment keeps event payloads unchanged.
SELECT d.canon_preserved_since AS "canonPreservedSince" FROM deployment AS d;
