-- name: mark_broken_chains(voucher_id)
-- Records that chains are broken. A chain that is already recorded as broken keeps its found_at.
INSERT INTO broken_chains AS b (found_at, voucher_id)
SELECT statement_timestamp(), c.voucher_id FROM unnest($1::text[]) AS c (voucher_id) ORDER BY c.voucher_id
    ON CONFLICT (voucher_id) DO UPDATE SET found_at = excluded.found_at, whole_at = NULL WHERE b.whole_at IS NOT NULL;

-- name: mark_whole_chains(after, last, broken)
-- Records that broken chains in an id range are intact again, except the chains in `broken`.
UPDATE broken_chains AS b SET whole_at = statement_timestamp()
 WHERE b.whole_at IS NULL AND b.voucher_id > $1::text AND b.voucher_id <= $2::text AND b.voucher_id <> ALL ($3::text[]);

-- name: count_broken_chains(limit)
-- The number of broken chains, counted up to a limit.
SELECT count(*)::int AS broken
  FROM (SELECT 1 FROM broken_chains AS b WHERE b.whole_at IS NULL ORDER BY b.voucher_id LIMIT $1::int) AS l;

-- name: find_damaged(voucher_id)
-- Among locked vouchers, those whose chains accept no further event: the events after sealed_sequence are not exactly
-- the Pending events up to last_sequence. OFFSET 0 prevents a plan that reads all events.
SELECT v.id FROM vouchers AS v
 CROSS JOIN LATERAL (SELECT count(*) AS unsealed, count(*) FILTER (WHERE e.record_hash IS NULL AND e.sequence <= v.last_sequence) AS pending
                       FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.sequence > v.sealed_sequence OFFSET 0) AS c
 WHERE v.id = ANY ($1::text[])
   AND (c.unsealed <> v.last_sequence - v.sealed_sequence OR c.pending <> v.last_sequence - v.sealed_sequence);
