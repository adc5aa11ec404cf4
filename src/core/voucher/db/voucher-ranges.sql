-- name: select_vouchers_of_batch(batch_id, after, limit)
-- The next vouchers of a batch in order of serials.
SELECT v.id, v.code, v.serial, v.status FROM vouchers AS v
 WHERE v.batch_id = $1::text AND v.serial > $2::int ORDER BY v.serial LIMIT $3::int;

-- name: select_active_of_batch(batch_id, after, limit, ends_before?, suspension?)
-- The next vouchers of a batch that are neither redeemed nor voided, in order of serials. With `ends_before`, only
-- those that end earlier. With `suspension`, only those whose history has this state of suspension (`none`: no
-- suspension).
SELECT v.id, v.serial FROM vouchers AS v JOIN batches AS b ON b.id = v.batch_id
 WHERE v.batch_id = $1::text AND v.serial > $2::int AND v.status = 'Active'
   AND ($4::timestamptz IS NULL OR voucher_end(v.valid_until, b.issued_until, b.valid_until) < $4::timestamptz)
   AND ($5::text IS NULL OR coalesce(v.suspension, 'none') = $5::text)
 ORDER BY v.serial LIMIT $3::int;

-- name: find_voucher_in_organization(organization_id, code_key?)
-- A voucher's id, found by its code within one organization.
SELECT v.id FROM vouchers AS v WHERE v.organization_id = $1::text AND v.code_key = $2::text;

-- name: select_organizations_with_brands
-- The organizations that can have vouchers. For operators only.
SELECT DISTINCT br.organization_id AS id FROM brands AS br;

-- name: find_vouchers(organization_ids, code_key?, ticket?, voucher_id?, external_ref?, redeem_code?, batch_id?, serial?, limit)
-- Finds vouchers of the given organizations, in id order, by one parameter, or by batch_id and serial. The other
-- parameters are null. A code, a reference and a redeem code are unique only within an organization, so each
-- organization is searched with one index scan. Additional indexes would make every issue and every redemption slower.
-- The expression in the join with vouchers prevents the planner from searching by organization alone.
WITH searched AS (SELECT unnest($1::text[]) AS id)
SELECT clock.now, v.id, v.code, v.serial, v.organization_id AS "organizationId", v.batch_id AS "batchId", v.status,
       v.redeemed_at AS "redeemedAt", voucher_end(v.valid_until, b.issued_until, b.valid_until) AS "validUntil",
       voucher_suspended(v.suspension, b.suspended_at) AS suspended, p.name AS "productName", p.key AS "productKey", br.name AS brand,
       CASE WHEN b.suspended_at IS NOT NULL OR v.suspension = 'batch' THEN 'batch' WHEN v.suspension = 'own' THEN 'voucher' END AS "suspendedBy",
       CASE WHEN b.suspended_at IS NOT NULL THEN b.suspension_reason END AS "batchReason",
       (SELECT e.payload FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.suspended'
         ORDER BY e.sequence DESC LIMIT 1) AS "suspendedPayload",
       rd.external_ref AS "externalRef", rd.redeem_code AS "redeemCode", og.sandbox
  FROM (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
 CROSS JOIN LATERAL (
       SELECT i.id FROM vouchers AS i WHERE i.id = $4::text
        UNION ALL
       SELECT s.id FROM vouchers AS s WHERE s.batch_id = $7::text AND s.serial = $8::int
        UNION ALL
       SELECT r.voucher_id FROM reservations AS r WHERE r.ticket = $3::text
        UNION ALL
       SELECT c.id FROM searched AS o JOIN vouchers AS c ON c.organization_id = ANY (ARRAY[o.id]) AND c.code_key = $2::text
        WHERE $2::text IS NOT NULL
        UNION ALL
       SELECT d.voucher_id FROM searched AS o CROSS JOIN LATERAL redemptions_under(o.id, $5::text) AS d
        WHERE $5::text IS NOT NULL
        UNION ALL
       SELECT d.voucher_id FROM searched AS o
         JOIN redemptions AS d ON d.redeem_code || ' ' || d.organization_id = ANY (ARRAY[$6::text || ' ' || o.id])
        WHERE $6::text IS NOT NULL
       ) AS found
  JOIN vouchers AS v ON v.id = ANY (ARRAY[found.id]) AND v.organization_id || '' = ANY ($1::text[])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  JOIN brands AS br ON br.id = ANY (ARRAY[p.brand_id])
  JOIN organizations AS og ON og.id = ANY (ARRAY[v.organization_id])
  LEFT JOIN redemptions AS rd ON rd.voucher_id = ANY (ARRAY[v.id])
 ORDER BY found.id LIMIT $9::int;

-- name: find_range_end(after, limit)
-- The last id among the next `limit` vouchers in id order. Null if there are none.
SELECT max(n.id) AS "lastId" FROM (SELECT v.id FROM vouchers AS v WHERE v.id > $1::text ORDER BY v.id LIMIT $2::int) AS n;

-- name: select_chain_heads_of_range(after, last)
-- The chain heads of the vouchers in an id range, in id order.
SELECT v.id AS "voucherId", v.last_sequence AS "lastSequence", v.sealed_sequence AS "sealedSequence",
       encode(v.sealed_hash, 'hex') AS "sealedHash"
  FROM vouchers AS v WHERE v.id > $1::text AND v.id <= $2::text ORDER BY v.id;

-- name: lock_expired_batch(only?, except, latest?)
-- Locks one batch: among the batches with expiries to record, the one that expired first. Skips batches that another
-- transaction has locked. The sweeper and advance_sandbox lock a batch before its vouchers. Acts that suspend, resume
-- or extend a batch lock it without vouchers. So no transaction waits for a batch while it holds the lock of a voucher.
SELECT b.id AS "batchId", b.expiry_recorded_to AS "recordedTo", b.voucher_count AS "voucherCount" FROM batches AS b
 WHERE b.expiry_recorded_to < b.voucher_count AND b.valid_until <= (SELECT least(clock_timestamp(), $3::timestamptz)) AND b.id <> ALL ($2::text[])
   AND ($1::text[] IS NULL OR b.id IN (SELECT unnest($1::text[])))
 ORDER BY b.valid_until, b.id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;

-- name: lock_unrecorded_expiries(batch_id, after, last)
-- Locks the Active vouchers of a serial range whose expiry is not recorded, in id order. Skips locked vouchers. Also
-- skips extended vouchers, which lock_own_expiries finds. A plan that was made while there were no expiries would read
-- all of them. OFFSET 0 prevents this.
SELECT v.id FROM vouchers AS v
 WHERE v.id = ANY (ARRAY(SELECT r.id FROM vouchers AS r WHERE r.batch_id = $1::text AND r.serial > $2::int AND r.serial <= $3::int))
   AND v.status = 'Active' AND v.valid_until IS NULL
   AND NOT EXISTS (SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
 ORDER BY v.id FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: advance_expiry(batch_id, after, last, damaged)
-- Sets the serial up to which the expiries of a locked batch are recorded. It is the serial before the first voucher of
-- the range that is Active and whose expiry is not recorded. If there is no such voucher, it is the end of the range.
-- Ignores damaged vouchers. OFFSET 0 has the same purpose as in lock_unrecorded_expiries.
UPDATE batches AS b
   SET expiry_recorded_to = coalesce((
         SELECT min(v.serial) - 1 FROM vouchers AS v
          WHERE v.batch_id = $1::text AND v.serial > $2::int AND v.serial <= $3::int AND v.status = 'Active'
            AND v.valid_until IS NULL AND NOT EXISTS (
                  SELECT 1 FROM voucher_events AS e WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.expired' OFFSET 0)
            AND v.id <> ALL ($4::text[])
       ), $3::int)
 WHERE b.id = $1::text
RETURNING b.expiry_recorded_to AS "recordedTo";

-- name: lock_own_expiries(limit, latest?)
-- Locks the next extended vouchers whose own end has passed and is not recorded, in order of their ends. Skips locked
-- vouchers. Includes redeemed, voided and damaged vouchers, whose expiry is never recorded.
SELECT v.id FROM vouchers AS v
 WHERE v.expiry_due AND v.valid_until <= (SELECT least(clock_timestamp(), $2::timestamptz))
 ORDER BY v.valid_until LIMIT $1::int FOR NO KEY UPDATE OF v SKIP LOCKED;

-- name: end_own_expiries(voucher_id)
-- Marks the expiry of locked vouchers as recorded.
UPDATE vouchers AS v SET expiry_due = false WHERE v.id = ANY ($1::text[]);

-- name: suspend_batch(id, reason, follow_ms)
-- Suspends a batch, and thereby all its vouchers at once, unless it is suspended. The caller then adds the events to
-- their histories. If it has not finished after follow_ms milliseconds, the sweeper continues.
UPDATE batches AS b
   SET suspended_at = date_trunc('milliseconds', clock_timestamp()), suspension_reason = $2::text,
       suspension_due_at = date_trunc('milliseconds', clock_timestamp()) + $3::int * interval '1 millisecond'
 WHERE b.id = $1::text AND b.suspended_at IS NULL;

-- name: resume_batch(id, reason?, follow_ms)
-- Ends the suspension of a batch. Each voucher stays suspended until its history has the resumed event. follow_ms has
-- the same meaning as in suspend_batch.
UPDATE batches AS b
   SET suspended_at = NULL, suspension_reason = $2::text,
       suspension_due_at = date_trunc('milliseconds', clock_timestamp()) + $3::int * interval '1 millisecond'
 WHERE b.id = $1::text AND b.suspended_at IS NOT NULL;

-- name: is_batch_suspended(batch_id)
SELECT b.suspended_at IS NOT NULL AS suspended FROM batches AS b WHERE b.id = $1::text;

-- name: select_due_suspensions(limit)
-- Batches whose suspension or resumption is not yet in all their vouchers' histories. The sweeper adds the events.
SELECT b.id AS "batchId", b.suspension_due_at AS "dueAt" FROM batches AS b
 WHERE b.suspension_due_at <= (SELECT clock_timestamp()) ORDER BY b.suspension_due_at LIMIT $1::int;

-- name: lock_suspension(batch_id)
-- Whether a batch is suspended. Locks its row. Returns no row if another transaction has locked it.
SELECT b.suspended_at AS "suspendedAt" FROM batches AS b WHERE b.id = $1::text FOR NO KEY UPDATE SKIP LOCKED;

-- name: end_suspension_walk(batch_id, due_at)
-- Records that all histories of a batch are up to date, unless the batch was suspended or resumed after due_at was
-- read.
UPDATE batches AS b SET suspension_due_at = NULL WHERE b.id = $1::text AND b.suspension_due_at = $2::timestamptz;

-- name: read_suspension_reason(voucher_id)
-- The reason of the last suspension or resumption of a voucher's batch.
SELECT b.suspension_reason AS reason FROM vouchers AS v JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id]) WHERE v.id = $1::text;

-- name: estimate_voucher_count
-- An estimate of the number of vouchers, from the last ANALYZE. 0 before the first ANALYZE.
SELECT greatest(c.reltuples, 0) AS estimate FROM pg_class AS c WHERE c.oid = 'vouchers'::regclass;
