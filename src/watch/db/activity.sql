-- name: find_trusted_at
-- When an operator last confirmed the clock. Each pass reads this before it reads the time up to which it counts. If an
-- operator confirms the clock between the two reads, the next pass sees it.
SELECT c.clock_trusted_at AS "trustedAt" FROM redemptions_closed AS c WHERE c.singleton;

-- name: lock_activity(clock_trusted_at?, until, hours_max)
-- Locks the counts and returns where counting continues. After an operator has confirmed the clock, counting goes back
-- to the start of the hour that contains the minute before the confirmation, because later counts may be wrong.
SELECT greatest(least(a.counted_until, CASE WHEN a.clock_trusted_at IS DISTINCT FROM $1::timestamptz
                                            THEN date_trunc('hour', $1::timestamptz - interval '1 minute', 'UTC') END),
                date_trunc('hour', $2::timestamptz, 'UTC') - make_interval(hours => $3::int)) AS "from",
       a.clock_trusted_at IS DISTINCT FROM $1::timestamptz AS "isReset"
  FROM activity_counted AS a WHERE a.singleton FOR UPDATE;

-- name: delete_activity(from, before)
-- Deletes counts before `from`, and counts at `before` or later.
DELETE FROM activity_counts AS c WHERE c.span IN ('minute', 'hour') AND (c.at < $1::timestamptz OR c.at >= $2::timestamptz);

-- name: delete_acquired(from, before)
-- Deletes counts before `from`, and counts at `before` or later.
DELETE FROM acquired_counts AS c WHERE c.at < $1::timestamptz OR c.at >= $2::timestamptz;

-- name: count_activity(from, until)
-- Adds the redemptions and claims between two times to their minutes and hours. Reads each organization's redemptions
-- from one index.
INSERT INTO activity_counts AS c (at, redemptions, claims, span, organization_id)
SELECT date_trunc(s.span, f.at, 'UTC'), sum(f.redemptions)::int, sum(f.claims)::int, s.span, f.organization_id
  FROM (
       SELECT r.at, o.id AS organization_id, r.redemptions, 0 AS claims
         FROM organizations AS o
        CROSS JOIN LATERAL (
              SELECT date_trunc('minute', rd.redeemed_at, 'UTC') AS at, count(*)::int AS redemptions FROM redemptions AS rd
               WHERE (rd.organization_id || '') = o.id AND rd.redeemed_at >= $1::timestamptz AND rd.redeemed_at < $2::timestamptz
               GROUP BY 1 OFFSET 0
              ) AS r
       UNION ALL
       SELECT k.claimed_at, br.organization_id, 0, 1
         FROM claims AS k
         JOIN products AS p ON p.id = ANY (ARRAY[k.product_id])
         JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
        WHERE k.claimed_at >= $1::timestamptz AND k.claimed_at < $2::timestamptz
       ) AS f
 CROSS JOIN (VALUES ('minute'), ('hour')) AS s (span)
 GROUP BY 1, 4, 5
    ON CONFLICT (span, at, organization_id)
    DO UPDATE SET redemptions = c.redemptions + excluded.redemptions, claims = c.claims + excluded.claims;

-- name: count_acquired(from, until)
-- Adds the claims and purchases between two times to the hours of their batches.
INSERT INTO acquired_counts AS c (at, acquired, batch_id)
SELECT date_trunc('hour', a.at, 'UTC'), count(*)::int, v.batch_id
  FROM (
       SELECT k.claimed_at AS at, k.voucher_id FROM claims AS k WHERE k.claimed_at >= $1::timestamptz AND k.claimed_at < $2::timestamptz
       UNION ALL
       SELECT b.bought_at, b.voucher_id FROM purchases AS b WHERE b.bought_at >= $1::timestamptz AND b.bought_at < $2::timestamptz
       ) AS a
 CROSS JOIN LATERAL (SELECT o.batch_id FROM vouchers AS o WHERE o.id = a.voucher_id OFFSET 0) AS v
 GROUP BY 1, 3
    ON CONFLICT (batch_id, at) DO UPDATE SET acquired = c.acquired + excluded.acquired;

-- name: move_activity(counted_until, clock_trusted_at?)
UPDATE activity_counted AS a SET counted_until = $1::timestamptz, clock_trusted_at = $2::timestamptz WHERE a.singleton;

-- name: read_activity(organization_id?)
-- The counts of an organization, or of all organizations except sandboxes, in the last 60 minutes and 48 hours. Returns
-- at least one row, for `now` and `completeUntil`. If nothing was counted, the counts in it are null.
SELECT clock.now, a.counted_until AS "completeUntil", s.span, s.at, s.redemptions, s.claims
  FROM activity_counted AS a
 CROSS JOIN (SELECT clock_timestamp() AS now OFFSET 0) AS clock
  LEFT JOIN LATERAL (
       SELECT c.span, c.at, sum(c.redemptions)::int AS redemptions, sum(c.claims)::int AS claims
         FROM (VALUES ('minute', interval '1 hour'), ('hour', interval '48 hours')) AS w (span, length)
         JOIN activity_counts AS c ON c.span = w.span AND c.at > clock.now - w.length
         JOIN organizations AS o ON o.id = ANY (ARRAY[c.organization_id])
        WHERE c.organization_id = $1::text OR ($1::text IS NULL AND NOT o.sandbox)
        GROUP BY 1, 2
       ) AS s ON true
 WHERE a.singleton;

-- name: read_stock(organization_id?, batches_max, left_max, soon_days)
-- The stock of batches that have an open window for claims or purchases and are not suspended, newest first. For each
-- batch, returns how many vouchers are left, when sales end, and when the stock runs out. The vouchers left are counted
-- up to a limit, including vouchers that were suspended individually. Sales end with the last window or with the batch.
-- The time when the stock runs out assumes the pace of the last day, or for a newer batch the pace since it was issued
-- and opened. It is null for fewer than ten sales in less than six hours, and if the count of the vouchers stopped at
-- its limit. If there are too many batches, prefers those that end soon, are sold out or sell. Organizations take
-- turns, so that none hides the batches of another. Within an organization, batches that end soon or are sold out come
-- before batches that sell, and the nearest end comes first.
SELECT b.id AS "batchId", b.product, b.brand, b.organization_id AS "organizationId", supply.available AS "left", b.ends_at AS "endsAt",
       CASE WHEN supply.available <= $3::int AND pace.acquired > 0
                 AND (pace.acquired >= 10 OR supply.available = 0 OR clock_timestamp() - b.sold_since >= interval '6 hours')
            THEN clock_timestamp() + supply.available * greatest(interval '1 hour', least(interval '24 hours', clock_timestamp() - b.sold_since)) / pace.acquired
       END AS "runsOutAt"
  FROM (
       SELECT s.id, s.product, s.brand, s.organization_id, s.sold_since, s.ends_at
         FROM (
              SELECT q.id, q.product, q.brand, q.organization_id, q.sold_since, q.ends_at, u.urgency,
                     row_number() OVER (PARTITION BY q.organization_id, u.urgency < 2 ORDER BY u.urgency, q.ends_at, q.id) AS turn
                FROM (
                     SELECT d.id, p.name AS product, br.name AS brand, br.organization_id,
                            greatest(d.created_at, min(coalesce(w.opens_at, '-infinity'))) AS sold_since,
                            least(d.valid_until, max(coalesce(w.closes_at, 'infinity'))) AS ends_at
                       FROM batch_windows AS w
                       JOIN batches AS d ON d.id = ANY (ARRAY[w.batch_id])
                       JOIN products AS p ON p.id = ANY (ARRAY[d.product_id])
                       JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
                       JOIN organizations AS o ON o.id = ANY (ARRAY[br.organization_id])
                      WHERE (w.opens_at <= clock_timestamp()) IS NOT FALSE AND (w.closes_at > clock_timestamp()) IS NOT FALSE
                        AND d.valid_until > clock_timestamp() AND d.suspended_at IS NULL AND (o.id = $1::text OR ($1::text IS NULL AND NOT o.sandbox))
                      GROUP BY d.id, p.id, br.id
                     ) AS q
               CROSS JOIN LATERAL (
                     SELECT CASE WHEN q.ends_at <= clock_timestamp() + make_interval(days => $4::int) THEN 0
                                 WHEN (SELECT 1 FROM vouchers AS v WHERE v.batch_id = q.id AND v.pickable ORDER BY v.serial LIMIT 1) IS NULL THEN 0
                                 WHEN (SELECT max(c.at) FROM acquired_counts AS c WHERE c.batch_id = q.id)
                                      > clock_timestamp() - interval '24 hours' THEN 1
                                 ELSE 2 END AS urgency OFFSET 0
                     ) AS u
              ) AS s
        ORDER BY s.urgency < 2 DESC, s.turn, s.urgency, s.ends_at, s.id LIMIT $2::int
       ) AS b
 CROSS JOIN LATERAL (
       SELECT count(*)::int AS available
         FROM (SELECT 1 FROM vouchers AS v WHERE v.batch_id = b.id AND v.pickable ORDER BY v.serial LIMIT $3::int + 1) AS up_to_limit
       ) AS supply
 CROSS JOIN LATERAL (
       SELECT sum(c.acquired) AS acquired FROM acquired_counts AS c WHERE c.batch_id = b.id AND c.at > clock_timestamp() - interval '24 hours'
       ) AS pace
 ORDER BY b.id DESC;

-- name: select_broken_chains(limit)
-- Chains that were broken at their last check.
SELECT b.voucher_id AS "voucherId", b.found_at AS since FROM broken_chains AS b WHERE b.whole_at IS NULL ORDER BY b.voucher_id LIMIT $1::int;

-- name: select_used_caps(limit)
-- Keys that have used at least 80 % of a daily limit on the current day in UTC, largest share first.
SELECT k.id AS "keyId", k.organization_id AS "organizationId", s.share >= 1 AS "isReached"
  FROM key_days AS d
  JOIN api_keys AS k ON k.id = ANY (ARRAY[d.key_id]) AND k.revoked_at IS NULL
 CROSS JOIN LATERAL (SELECT greatest(d.redemptions::numeric / k.max_per_day, d.amount_usd / nullif(k.max_amount_per_day_usd, 0)) AS share) AS s
 WHERE d.day = (statement_timestamp() AT TIME ZONE 'UTC')::date AND s.share >= 0.8
 ORDER BY s.share DESC, k.id LIMIT $1::int;

-- name: read_postgres
-- The state of the server. Without pg_read_all_stats, a role sees which standbys are connected, but not how far they
-- lag.
SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS "isStandby",
       current_setting('synchronous_standby_names') AS "standbyNames", standbys.names AS standbys, standbys."lagMs",
       (SELECT sum(d.numbackends)::int FROM pg_stat_database AS d) AS connections,
       current_setting('max_connections')::int AS "connectionsMax", pg_database_size(current_database()) AS "sizeBytes"
  FROM (SELECT coalesce(array_agg(r.application_name::text)
                        FILTER (WHERE coalesce(r.state, 'streaming') = 'streaming'), '{}') AS names,
               (extract(epoch FROM max(r.replay_lag)) * 1000)::bigint AS "lagMs"
          FROM pg_stat_replication AS r) AS standbys;
