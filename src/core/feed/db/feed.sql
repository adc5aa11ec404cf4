-- name: move_feed(latest)
-- Moves the end of the feed forward, as far as open transactions allow.
SELECT FROM (SELECT move_event_feed($1::timestamptz) OFFSET 0) AS moved;

-- name: find_feed_end
-- The end of the feed: the last final position (slot), and the time before which every event is in the feed.
SELECT ((f.final_id + 1) << 12) - 1 AS "lastSlot", f.complete_until AS "completeUntil" FROM event_feed AS f WHERE f.singleton;

-- name: find_feed_place(slot)
-- The last event, of any organization, up to a position in the feed (slot).
SELECT e.log_slot AS slot, encode(e.record_hash, 'hex') AS "recordHash"
  FROM voucher_events AS e WHERE e.log_slot <= $1::bigint ORDER BY e.log_slot DESC LIMIT 1;

-- name: find_scanned_place(after_slot, last_slot, scanned)
-- The event at which a scan of `scanned` events ends. No row if the scan reaches last_slot first.
SELECT e.log_slot AS slot, encode(e.record_hash, 'hex') AS "recordHash"
  FROM voucher_events AS e WHERE e.log_slot > $1::bigint AND e.log_slot <= $2::bigint
 ORDER BY e.log_slot OFFSET $3::int - 1 LIMIT 1;

-- name: find_page_start(organization_id, last_slot, event_types, scanned, limit)
-- The slot before the organization's last `limit` events up to last_slot: that of the organization's previous event or,
-- if the scan stops earlier, that of the event at which it stopped. 0 if the feed has no earlier event. An empty
-- event_types means all types.
SELECT coalesce(
         (SELECT e.log_slot
            FROM (SELECT o.log_slot, o.voucher_id, o.event_type FROM voucher_events AS o WHERE o.log_slot <= $2::bigint
                   ORDER BY o.log_slot DESC LIMIT $4::int) AS e
           WHERE (cardinality($3::text[]) = 0 OR e.event_type = ANY ($3::text[]))
             AND (SELECT v.organization_id FROM vouchers AS v WHERE v.id = e.voucher_id) = $1::text
           ORDER BY e.log_slot DESC OFFSET $5::int LIMIT 1),
         (SELECT o.log_slot FROM voucher_events AS o WHERE o.log_slot <= $2::bigint
           ORDER BY o.log_slot DESC OFFSET $4::int LIMIT 1),
         0) AS slot;

-- name: select_feed_events(organization_id, after_slot, last_slot, event_types, scanned, limit)
-- The organization's events among the next events of the feed. An empty event_types means all types. The scan is
-- limited, because the feed contains the events of all organizations.
SELECT e.log_slot AS slot, e.voucher_id AS "voucherId", e.sequence, e.event_type AS "eventType", e.occurred_at AS "occurredAt",
       e.seal_status AS "sealStatus", e.actor_connected_id AS "actorConnectedId", e.actor_is_employee AS "actorIsEmployee",
       encode(e.previous_hash, 'hex') AS "previousHash", encode(e.record_hash, 'hex') AS "recordHash", e.payload,
       e.erased_by AS "erasedBy",
       (SELECT l.index FROM log_batches AS b, log_published AS p,
               LATERAL (SELECT log_index_of(b.first_index, b.places, e.log_slot) AS index) AS l
         WHERE b.id = e.log_slot >> 12 AND p.one AND l.index < p.size) AS "logIndex"
  FROM (SELECT o.* FROM voucher_events AS o WHERE o.log_slot > $2::bigint AND o.log_slot <= $3::bigint
         ORDER BY o.log_slot LIMIT $5::int) AS e
 WHERE (cardinality($4::text[]) = 0 OR e.event_type = ANY ($4::text[]))
   AND (SELECT v.organization_id FROM vouchers AS v WHERE v.id = e.voucher_id) = $1::text
 ORDER BY e.log_slot LIMIT $6::int;

-- name: count_next_events(after_slot, last_slot, scanned)
-- The number of each organization's events among the next events of the feed.
SELECT (SELECT v.organization_id FROM vouchers AS v WHERE v.id = e.voucher_id) AS "organizationId", count(*)::int AS events
  FROM (SELECT o.voucher_id FROM voucher_events AS o WHERE o.log_slot > $1::bigint AND o.log_slot <= $2::bigint
         ORDER BY o.log_slot LIMIT $3::int) AS e
 GROUP BY 1;
