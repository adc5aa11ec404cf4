-- name: open_reservations(ticket, voucher_id, organization_id, key_id, started_at, expires_at, token_secret_id)
-- Opens reservations of locked vouchers. Raises VS001 when a voucher is not Active, is suspended, has expired or has a
-- Live row, or when a ticket exists. This happens only if the caller decided on state that it had not read under the
-- lock.
WITH opened AS (
  INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
  SELECT w.started_at, w.expires_at, w.ticket, w.voucher_id, w.organization_id, w.key_id, 'Live', w.token_secret_id
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], $7::text[])
         AS w (ticket, voucher_id, organization_id, key_id, started_at, expires_at, token_secret_id)
    JOIN vouchers AS v ON v.id = ANY (ARRAY[w.voucher_id])
    JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
   WHERE v.status = 'Active' AND NOT voucher_suspended(v.suspension, b.suspended_at)
     AND voucher_end(v.valid_until, b.issued_until, b.valid_until) > w.started_at
      ON CONFLICT DO NOTHING
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'vouchers that can be reserved') FROM opened;

-- name: end_reservations(ticket, state, reason?, ended_at)
-- Ends Live reservations of locked vouchers. Raises VS001 when one is not Live. The state Expired requires the row's
-- expires_at as ended_at. IS NOT FALSE keeps the planner from reservations_one_live, which lacks the ticket.
WITH ended AS (
  UPDATE reservations AS r
     SET state = w.state, end_reason = w.end_reason,
         ended_at = CASE WHEN w.state = 'Expired' THEN r.expires_at ELSE $4::timestamptz END
    FROM unnest($1::text[], $2::text[], $3::text[]) AS w (ticket, state, end_reason)
   WHERE r.ticket = ANY (ARRAY[w.ticket]) AND (r.state = 'Live') IS NOT FALSE
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'live reservations') FROM ended;

-- name: select_overdue_reservations(after, after_ticket, limit, latest?)
-- Rows in state Live whose expires_at has passed, in order of expires_at, after the last row seen. Locks nothing: the
-- caller must lock the vouchers before it ends a row.
SELECT r.ticket, r.voucher_id AS "voucherId", r.expires_at AS "expiresAt" FROM reservations AS r
 WHERE r.ended_at IS NULL AND r.expires_at <= (SELECT least(clock_timestamp(), $4::timestamptz)) AND r.expires_at >= $1::timestamptz
   AND (r.expires_at, r.ticket) > ($1::timestamptz, $2::text)
 ORDER BY r.expires_at, r.ticket LIMIT $3::int;

-- name: count_live_reservations(limit)
-- The number of live reservations. The count stops at a limit. Reads only the index reservations_live_by_end.
SELECT count(*)::int AS live
  FROM (SELECT 1 FROM reservations AS r WHERE r.ended_at IS NULL AND r.expires_at > (SELECT clock_timestamp())
         ORDER BY r.expires_at LIMIT $1::int) AS l;

-- name: select_reservations_of_voucher(voucher_id, limit)
-- The newest reservations of a voucher, newest first, with the labels of their keys. A row in state Live whose
-- expires_at has passed is shown as Expired at that time.
SELECT r.ticket, CASE WHEN r.state = 'Live' AND r.expires_at <= clock.now THEN 'Expired' ELSE r.state END AS state,
       r.key_id AS "keyId", k.label AS "keyLabel", r.started_at AS "startedAt", r.expires_at AS "expiresAt",
       CASE WHEN r.state = 'Live' AND r.expires_at <= clock.now THEN r.expires_at ELSE r.ended_at END AS "endedAt",
       r.end_reason AS "endReason"
  FROM (SELECT clock_timestamp() AS now) AS clock
 CROSS JOIN LATERAL (
       (SELECT l.* FROM reservations AS l WHERE l.voucher_id = $1::text AND l.state = 'Live')
        UNION ALL
       (SELECT e.* FROM reservations AS e WHERE e.voucher_id = $1::text AND e.state <> 'Live' ORDER BY e.started_at DESC LIMIT $2::int)
       ) AS r
  LEFT JOIN api_keys AS k ON k.id = ANY (ARRAY[r.key_id])
 ORDER BY r.started_at DESC, r.ticket DESC LIMIT $2::int;

-- name: delete_old_reservations(after_ticket, before_ticket, ended_before, limit)
-- Reads the next reservations in the order of tickets, which is the order of their starts, and deletes those that ended
-- unused before a given time. Returns how many it has read and deleted, and the last ticket.
WITH page AS (
  SELECT r.ticket, r.state, r.ended_at FROM reservations AS r
   WHERE r.ticket > $1::text AND r.ticket < $2::text ORDER BY r.ticket LIMIT $4::int
), deleted AS (
  DELETE FROM reservations AS r USING page AS w
   WHERE r.ticket = ANY (ARRAY[w.ticket]) AND w.state IN ('Released', 'Expired') AND w.ended_at < $3::timestamptz
  RETURNING 1
)
SELECT (SELECT count(*)::int FROM page) AS read, (SELECT count(*)::int FROM deleted) AS deleted, (SELECT max(p.ticket) FROM page AS p) AS last;
