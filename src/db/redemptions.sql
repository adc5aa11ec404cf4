-- name: find_confirmations
-- The burns that references of organizations stand for. One row per confirmed reference.
-- $1 organization_id text[], $2 external_ref text[]
SELECT rd.organization_id, rd.external_ref, rd.attempt_id, rd.redeem_code, rd.redeemed_at
  FROM unnest($1::text[], $2::text[]) AS w (organization_id, external_ref)
  JOIN redemptions AS rd ON rd.organization_id = ANY (ARRAY[w.organization_id]) AND rd.external_ref = w.external_ref;

-- name: find_redeem_result
-- The burn behind one reference with everything that its answer says.
-- $1 organization_id text, $2 external_ref text
SELECT rd.voucher_id, rd.attempt_id, rd.redeem_code, rd.redeemed_at, v.serial, b.price_usd, b.benefit_months, p.name AS product_name,
       p.key AS product_key
  FROM redemptions AS rd
  JOIN vouchers AS v ON v.id = ANY (ARRAY[rd.voucher_id])
  JOIN batches AS b ON b.id = ANY (ARRAY[v.batch_id])
  JOIN products AS p ON p.id = ANY (ARRAY[b.product_id])
 WHERE rd.organization_id = $1::text AND rd.external_ref = $2::text;

-- name: insert_redemptions
-- Writes burns, in (organization, reference) order so that two writers of the same references wait for each other in one
-- direction only. Raises VS001 when someone else has confirmed a reference meanwhile; the caller decides again. A second burn of a
-- voucher is an error of its own.
-- $1 redeemed_at timestamptz, $2 voucher_id text[], $3 organization_id text[], $4 key_id text[], $5 attempt_id text[],
-- $6 ticket text[], $7 redeem_code text[], $8 external_ref text[]
WITH burnt AS (
  INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
  SELECT $1::timestamptz, w.voucher_id, w.organization_id, w.key_id, w.attempt_id, w.ticket, w.redeem_code, w.external_ref
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[])
         AS w (voucher_id, organization_id, key_id, attempt_id, ticket, redeem_code, external_ref)
   ORDER BY w.organization_id COLLATE "C", w.external_ref COLLATE "C"
      ON CONFLICT (organization_id, external_ref) DO NOTHING
  RETURNING 1
)
SELECT demand_rows(count(*), cardinality($2::text[]), 'references were not confirmed yet') FROM burnt;
