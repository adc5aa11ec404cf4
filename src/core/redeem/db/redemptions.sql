-- name: read_redemptions(organization_id, external_ref)
-- The redemptions with the given references, with all fields of responses, and the database's time. Returns one row per
-- given reference, in no particular order. The redemption is null if the reference is not redeemed.
SELECT (w.n - 1)::int AS n, clock.now, rd.voucher_id AS "redemption.voucherId", rd.attempt_id AS "redemption.attemptId",
       rd.redeem_code AS "redemption.redeemCode", v.code_key AS "redemption.codeKey", v.serial AS "redemption.serial", p.name AS "redemption.productName",
       p.key AS "redemption.productKey", b.price_usd AS "redemption.priceUsd", b.benefit_months AS "redemption.benefitMonths",
       rd.redeemed_at AS "redemption.redeemedAt", rd.external_ref AS "redemption.externalRef", rd.ticket AS "redemption.ticket",
       rd.key_id AS "redemption.keyId", k.label AS "redemption.keyLabel"
  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (organization_id, external_ref, n)
 CROSS JOIN (SELECT date_trunc('milliseconds', clock_timestamp()) AS now) AS clock
  LEFT JOIN LATERAL redemptions_under(w.organization_id, w.external_ref) AS rd ON true
  LEFT JOIN vouchers AS v ON v.id = ANY (ARRAY[rd.voucher_id])
  LEFT JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  LEFT JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN api_keys AS k ON k.id = ANY (ARRAY[rd.key_id]);

-- name: move_closed_until(latest)
-- Moves closed_until to two seconds ago, or to a given time if that is earlier. After the commit, no redemption with an
-- earlier time can be inserted. A redemption is usually inserted long before two seconds have passed since it read its
-- time. A slower redemption is decided again.
UPDATE redemptions_closed AS c SET closed_until = w.until
  FROM (SELECT date_trunc('milliseconds', least(statement_timestamp() - interval '2 seconds', $1::timestamptz)) AS until) AS w
 WHERE c.singleton AND c.closed_until < w.until;

-- name: trust_clock
-- Records that the clock is right. Sets closed_until to two seconds ago if it is older or in the future.
UPDATE redemptions_closed AS c
   SET clock_trusted_at = clock_timestamp(),
       closed_until = CASE WHEN c.closed_until BETWEEN w.until AND clock_timestamp() THEN c.closed_until ELSE w.until END
  FROM (SELECT date_trunc('milliseconds', statement_timestamp()) - interval '2 seconds' AS until) AS w
 WHERE c.singleton;

-- name: find_closed_until
-- The time before which redemptions are refused, and the time when an operator last said that the clock is right.
SELECT c.closed_until AS "closedUntil", c.clock_trusted_at AS "trustedAt" FROM redemptions_closed AS c WHERE c.singleton;

-- name: prove_complete_until
-- Moves complete_until forward to the time before which the redemptions are complete. Later statements see every
-- redemption before this time, and none is added afterwards. The new value is closed_until or, if that is earlier, the
-- time of the earliest redemption in an open transaction. This is safe for the following reason. Before its insert
-- ends, a transaction takes an advisory lock whose key contains the time of its redemptions, and then reads
-- closed_until (check_new_redemptions). This statement reads pg_locks after it has taken its snapshot. So a transaction
-- without such a lock has ended, or will read closed_until later. In the second case it finds this value or a later
-- one, and fails if its redemptions are earlier. MATERIALIZED makes the time found here count, even if another process
-- changes the row meanwhile. complete_until does not move while closed_until is ahead of the clock.
WITH found AS MATERIALIZED (
  SELECT least(o.closed_until, (
           SELECT min(timestamptz 'epoch' + (((l.classid::bigint << 32) | l.objid::bigint) - (21092::bigint << 48)) * interval '1 millisecond')
             FROM pg_locks AS l
            WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.classid::bigint >> 16 = 21092
              AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
         )) AS until
    FROM redemptions_closed AS o WHERE o.singleton
)
UPDATE redemptions_closed AS c SET complete_until = f.until
  FROM found AS f
 WHERE c.singleton AND c.complete_until < f.until AND c.closed_until <= clock_timestamp();

-- name: find_complete_until
-- The last proved time before which the redemptions are complete.
SELECT c.complete_until AS "completeUntil" FROM redemptions_closed AS c WHERE c.singleton;

-- name: select_redemptions(organization_id, after_time, after_voucher_id, before, limit)
-- A page of an organization's redemptions in order of time and voucher. One index gives the page, before the joins.
SELECT rd.external_ref AS "externalRef", rd.voucher_id AS "voucherId", rd.redeem_code AS "redeemCode", v.serial,
       p.name AS "productName", p.key AS "productKey", b.price_usd AS "priceUsd", b.benefit_months AS "benefitMonths",
       rd.redeemed_at AS "redeemedAt", rd.ticket, rd.key_id AS "keyId", k.label AS "keyLabel"
  FROM (SELECT o.* FROM redemptions AS o
         WHERE (o.organization_id || '') = $1::text AND (o.redeemed_at, o.voucher_id) > ($2::timestamptz, $3::text)
           AND o.redeemed_at < $4::timestamptz
         ORDER BY o.redeemed_at, o.voucher_id LIMIT $5::int) AS rd
  JOIN vouchers AS v ON v.id = ANY (ARRAY[rd.voucher_id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
  LEFT JOIN api_keys AS k ON k.id = ANY (ARRAY[rd.key_id])
 ORDER BY rd.redeemed_at, rd.voucher_id;

-- name: insert_redemptions(redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket?, redeem_code, external_ref)
-- Inserts redemptions in the order of organization and reference, so that two writers of the same references cannot
-- deadlock. Raises VS001 if another transaction has redeemed a reference or has moved closed_until past redeemed_at.
-- The caller then decides again. A second redemption of a voucher violates the primary key.
WITH redeemed AS (
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
  SELECT $1::timestamptz, w.voucher_id, w.organization_id, w.key_id, w.attempt_id, w.ticket, w.redeem_code, w.external_ref
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
         AS w (voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
   ORDER BY w.organization_id COLLATE "C", w.external_ref COLLATE "C"
      ON CONFLICT (organization_id, external_ref) DO NOTHING
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($2::text[]), 'unconfirmed references') FROM redeemed;

-- name: find_redemption_of_voucher(voucher_id)
-- A voucher's redemption with the label of its key.
SELECT rd.external_ref AS "externalRef", rd.redeem_code AS "redeemCode", rd.redeemed_at AS "redeemedAt", rd.key_id AS "keyId",
       k.label AS "keyLabel", rd.ticket, rd.attempt_id AS "attemptId"
  FROM redemptions AS rd LEFT JOIN api_keys AS k ON k.id = ANY (ARRAY[rd.key_id]) WHERE rd.voucher_id = $1::text;

-- name: select_last_redemptions(organization_id, before_time?, before_voucher_id, limit)
-- A page of an organization's redemptions before a time and voucher, newest first. One index gives the page.
SELECT rd.voucher_id AS "voucherId", rd.external_ref AS reference, rd.redeemed_at AS "redeemedAt",
       p.name AS "productName", b.price_usd AS "priceUsd"
  FROM (SELECT o.* FROM redemptions AS o
         WHERE (o.organization_id || '') = $1::text
           AND (o.redeemed_at, o.voucher_id) < (coalesce($2::timestamptz, 'infinity'), $3::text)
         ORDER BY o.redeemed_at DESC, o.voucher_id DESC LIMIT $4::int) AS rd
  JOIN vouchers AS v ON v.id = ANY (ARRAY[rd.voucher_id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
 ORDER BY rd.redeemed_at DESC, rd.voucher_id DESC;

-- name: sum_redemptions(organization_id, bounds)
-- The number and the value of an organization's redemptions per period, product and key, and the times of the first and
-- the last redemption. Period n begins at bound n and ends before the next bound. Groups by batch before the other
-- joins, so that each redemption needs only one other row: its voucher. Values are in cents, because sums of whole
-- numbers are exact in every program.
SELECT s.period, b.product_id AS "productId", p.name AS "productName", p.key AS "productKey", br.name AS brand,
       s.key_id AS "keyId", k.label AS "keyLabel",
       sum(s.redemptions)::bigint AS redemptions, sum(s.redemptions * b.price_usd * 100)::bigint AS cents,
       min(s.first_at) AS "firstAt", max(s.last_at) AS "lastAt"
  FROM (SELECT width_bucket(rd.redeemed_at, $2::timestamptz[]) AS period, v.batch_id, rd.key_id, count(*) AS redemptions,
               min(rd.redeemed_at) AS first_at, max(rd.redeemed_at) AS last_at
          FROM redemptions AS rd
         CROSS JOIN LATERAL (SELECT batch_id FROM vouchers WHERE id = rd.voucher_id OFFSET 0) AS v
         WHERE (rd.organization_id || '') = $1::text AND rd.redeemed_at >= ($2::timestamptz[])[1]
           AND rd.redeemed_at < ($2::timestamptz[])[cardinality($2::timestamptz[])]
         GROUP BY 1, 2, 3) AS s
 CROSS JOIN LATERAL (SELECT product_id, price_usd FROM batches WHERE id = s.batch_id OFFSET 0) AS b
 CROSS JOIN LATERAL (SELECT name, key, brand_id FROM products WHERE id = b.product_id OFFSET 0) AS p
 CROSS JOIN LATERAL (SELECT name FROM brands WHERE id = p.brand_id OFFSET 0) AS br
  LEFT JOIN LATERAL (SELECT label FROM api_keys WHERE id = s.key_id OFFSET 0) AS k ON true
 GROUP BY s.period, b.product_id, p.name, p.key, br.name, s.key_id, k.label
 ORDER BY s.period, p.name, b.product_id, k.label, s.key_id;

-- name: select_statement_rows(organization_id, after_time, after_voucher_id, before, limit)
-- A page of the rows that a statement's hash covers, in order of time and voucher. One index gives the page.
SELECT rd.voucher_id AS "voucherId", rd.redeemed_at AS "redeemedAt", b.price_usd AS "priceUsd", encode(e.record_hash, 'hex') AS "recordHash"
  FROM (SELECT o.* FROM redemptions AS o
         WHERE (o.organization_id || '') = $1::text AND (o.redeemed_at, o.voucher_id) > ($2::timestamptz, $3::text)
           AND o.redeemed_at < $4::timestamptz
         ORDER BY o.redeemed_at, o.voucher_id LIMIT $5::int) AS rd
  JOIN vouchers AS v ON v.id = ANY (ARRAY[rd.voucher_id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN voucher_events AS e ON e.voucher_id = ANY (ARRAY[rd.voucher_id]) AND e.event_type = 'voucher.instance.redeemed'
 ORDER BY rd.redeemed_at, rd.voucher_id;

-- name: find_statement(organization_id, month)
-- The final statement of a month, if it is stored. note_due: whether the service has a log, which must sign the
-- statement.
SELECT s.content, s.note, s.note_due AS "noteDue" FROM statements AS s WHERE s.organization_id = $1::text AND s.month = $2::text;

-- name: keep_statement(organization_id, month, content)
-- Stores the final statement of a month, unless another process has stored one.
INSERT INTO statements (organization_id, month, content, note_due)
SELECT $1::text, $2::text, $3::text, EXISTS (SELECT FROM log_tree AS t WHERE t.one)
    ON CONFLICT (organization_id, month) DO NOTHING;

-- name: lock_references(organization_id, external_ref)
-- Locks references in shared mode until the transaction ends, without waiting. Returns the positions of the references
-- that could not be locked, because another transaction is ending them. Later statements see every row of
-- reference_ends that was committed before the locks were granted. No row is added while these locks are held.
SELECT (w.n - 1)::int AS n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (organization_id, external_ref, n)
 WHERE NOT pg_try_advisory_xact_lock_shared(hashtext(w.organization_id), hashtext(w.external_ref));

-- name: find_references(organization_id, external_ref, seen_end, generation)
-- One row for each attempt that is ended or whose reference is redeemed. An attempt is ended if reference_ends has
-- another version of the reference than seen_end, or if the attempt is so old that a later row may have been deleted.
SELECT (w.n - 1)::int AS n, coalesce(e.version <> w.seen_end, false) OR w.generation < g.generation - 1 AS "isEnded",
       rd.attempt_id AS "confirmation.attemptId", rd.redeem_code AS "confirmation.redeemCode", rd.redeemed_at AS "confirmation.redeemedAt"
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
       WITH ORDINALITY AS w (organization_id, external_ref, seen_end, generation, n)
 CROSS JOIN (SELECT o.generation FROM reference_generation AS o WHERE o.singleton) AS g
  LEFT JOIN LATERAL redemptions_under(w.organization_id, w.external_ref) AS rd ON true
  LEFT JOIN reference_ends AS e ON e.organization_id = w.organization_id AND e.external_ref = w.external_ref
 WHERE rd.voucher_id IS NOT NULL OR e.version <> w.seen_end OR w.generation < g.generation - 1;

-- name: keep_generation
-- Prevents a new generation of reference_ends until the transaction ends. Waits only while another transaction begins
-- one.
SELECT pg_advisory_xact_lock_shared(21094::bigint << 48);

-- name: lock_references_to_end(organization_id, external_ref)
-- Locks references exclusively until the transaction ends, without waiting. Returns the positions of the references
-- that it could not lock, because another transaction may be redeeming them. Later statements see every redemption by a
-- transaction that had locked a reference.
SELECT (w.n - 1)::int AS n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (organization_id, external_ref, n)
 WHERE NOT pg_try_advisory_xact_lock(hashtext(w.organization_id), hashtext(w.external_ref));

-- name: end_references(organization_id, external_ref)
-- Ends distinct, locked references without a redemption, so that no earlier attempt redeems. Runs after
-- keep_generation.
WITH ended AS (
  INSERT INTO reference_ends (generation, organization_id, external_ref)
  SELECT g.generation, w.organization_id, w.external_ref
    FROM unnest($1::text[], $2::text[]) AS w (organization_id, external_ref)
   CROSS JOIN reference_generation AS g WHERE g.singleton
      ON CONFLICT (organization_id, external_ref) DO UPDATE SET version = DEFAULT, generation = excluded.generation
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'ended references') FROM ended;

-- name: begin_generation(latest?)
-- Begins the next generation of reference_ends, at most once an hour. A trigger waits for transactions that ran
-- keep_generation.
UPDATE reference_generation AS g SET generation = g.generation + 1, started_at = clock.now
  FROM (SELECT least(clock_timestamp(), $1::timestamptz) AS now) AS clock
 WHERE g.singleton AND g.started_at < clock.now - interval '1 hour';

-- name: delete_old_ends(limit)
-- Deletes rows of reference_ends that are at least two generations old. An attempt that began before such a row was
-- written redeems nothing in any case. Does not wait for a call that ends the same reference again.
DELETE FROM reference_ends AS e
 USING (SELECT o.organization_id, o.external_ref FROM reference_ends AS o
         WHERE o.generation <= (SELECT g.generation - 2 FROM reference_generation AS g WHERE g.singleton)
         LIMIT $1::int FOR UPDATE SKIP LOCKED) AS w
 WHERE e.organization_id = ANY (ARRAY[w.organization_id]) AND e.external_ref = w.external_ref;
