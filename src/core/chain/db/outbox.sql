-- name: find_enabled_endpoints
-- Whether any webhook endpoint is enabled.
SELECT EXISTS (SELECT FROM webhook_endpoints AS e WHERE e.enabled) AS "hasTargets";

-- name: announce_events(voucher_id, sequence)
-- Writes sealed events of locked vouchers to the outbox, one row per organization that has an enabled endpoint. The
-- caller must pass at most ROW_EVENTS_MAX events, the maximum for one row.
INSERT INTO webhook_outbox (organization_id, voucher_ids, sequences)
SELECT o.organization_id, o.voucher_ids, o.sequences
  FROM (SELECT s.organization_id, array_agg(s.voucher_id ORDER BY s.n) AS voucher_ids, array_agg(s.sequence ORDER BY s.n) AS sequences
          FROM (SELECT w.voucher_id, w.sequence, w.n, (SELECT v.organization_id FROM vouchers AS v WHERE v.id = w.voucher_id) AS organization_id
                  FROM unnest($1::text[], $2::int[]) WITH ORDINALITY AS w (voucher_id, sequence, n) OFFSET 0) AS s
         GROUP BY s.organization_id) AS o
 WHERE (SELECT e.enabled FROM webhook_endpoints AS e WHERE e.organization_id = o.organization_id AND e.enabled LIMIT 1);

-- name: announce_expired_reservations(ticket)
-- Writes reservations that this transaction has expired to the outbox, one row per organization that has an enabled
-- endpoint. The caller must pass at most ROW_EVENTS_MAX reservations.
INSERT INTO webhook_outbox (organization_id, voucher_ids, tickets)
SELECT r.organization_id, array_agg(r.voucher_id), array_agg(r.ticket)
  FROM reservations AS r
 WHERE r.ticket = ANY ($1::text[]) AND (r.state = 'Expired') IS NOT FALSE
   AND (SELECT e.enabled FROM webhook_endpoints AS e WHERE e.organization_id = r.organization_id AND e.enabled LIMIT 1)
 GROUP BY r.organization_id;
