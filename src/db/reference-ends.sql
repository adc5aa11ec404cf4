-- name: lock_references
-- Locks references in shared mode until the transaction ends, without waiting. Returns the positions of those that another transaction is
-- ending. Later statements see every end that was committed before a lock was granted, and none is committed while it is held.
-- $1 organization_id text[], $2 external_ref text[]
SELECT (w.n - 1)::int AS n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (organization_id, external_ref, n)
 WHERE NOT pg_try_advisory_xact_lock_shared(hashtext(w.organization_id), hashtext(w.external_ref));

-- name: find_references
-- What is known of the references of attempts: a row for each that is redeemed, and for each attempt that is ended. It is ended if its reference
-- has another end than the attempt has seen, or if an end that it may not have seen was deleted.
-- $1 organization_id text[], $2 external_ref text[], $3 seen_end bigint[] (0: none), $4 generation bigint[]
SELECT (w.n - 1)::int AS n, coalesce(e.version <> w.seen_end, false) OR w.generation < g.generation - 1 AS "isEnded",
       rd.attempt_id AS "confirmation.attemptId", rd.redeem_code AS "confirmation.redeemCode", rd.redeemed_at AS "confirmation.redeemedAt"
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[])
       WITH ORDINALITY AS w (organization_id, external_ref, seen_end, generation, n)
 CROSS JOIN (SELECT o.generation FROM reference_generation AS o WHERE o.singleton) AS g
  LEFT JOIN redemptions AS rd ON rd.organization_id = w.organization_id AND rd.external_ref = w.external_ref
  LEFT JOIN reference_ends AS e ON e.organization_id = w.organization_id AND e.external_ref = w.external_ref
 WHERE rd.voucher_id IS NOT NULL OR e.version <> w.seen_end OR w.generation < g.generation - 1;

-- name: keep_generation
-- Keeps the generation of ends until the transaction ends. Waits only while a generation begins.
SELECT pg_advisory_xact_lock_shared(21094::bigint << 48);

-- name: lock_references_to_end
-- Locks references alone until the transaction ends, without waiting. Returns the positions of those that it could not lock: another transaction
-- may be redeeming them. Later statements see every redemption by a transaction that had locked one.
-- $1 organization_id text[], $2 external_ref text[]
SELECT (w.n - 1)::int AS n FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS w (organization_id, external_ref, n)
 WHERE NOT pg_try_advisory_xact_lock(hashtext(w.organization_id), hashtext(w.external_ref));

-- name: end_references
-- Writes the ends of locked references without a redemption. Runs after keep_generation. References must be distinct.
-- $1 organization_id text[], $2 external_ref text[]
WITH ended AS (
  INSERT INTO reference_ends (generation, organization_id, external_ref)
  SELECT g.generation, w.organization_id, w.external_ref
    FROM unnest($1::text[], $2::text[]) AS w (organization_id, external_ref)
   CROSS JOIN reference_generation AS g WHERE g.singleton
      ON CONFLICT (organization_id, external_ref) DO UPDATE SET version = DEFAULT, generation = excluded.generation
  RETURNING 1
)
SELECT assert_row_count(count(*), cardinality($1::text[]), 'ended references') FROM ended;

-- name: begin_generation
-- Begins the next generation of ends, once an hour. A trigger waits for the transactions that keep the present one.
UPDATE reference_generation AS g SET generation = g.generation + 1, started_at = clock_timestamp()
 WHERE g.singleton AND g.started_at < clock_timestamp() - interval '1 hour';

-- name: delete_old_ends
-- Deletes ends of two generations ago. An attempt that has not seen them redeems nothing. Does not wait for a call that ends a reference again.
-- $1 limit int
DELETE FROM reference_ends AS e
 USING (SELECT o.organization_id, o.external_ref FROM reference_ends AS o
         WHERE o.generation <= (SELECT g.generation - 2 FROM reference_generation AS g WHERE g.singleton)
         LIMIT $1::int FOR UPDATE SKIP LOCKED) AS w
 WHERE e.organization_id = ANY (ARRAY[w.organization_id]) AND e.external_ref = w.external_ref;
