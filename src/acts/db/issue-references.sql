-- name: insert_issue_reference(organization_id, issue_ref, batch_id, terms)
-- Writes no row when the organization has used the reference. Waits for a transaction that issues under the same one.
INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms) VALUES ($1::text, $2::text, $3::text, $4::jsonb)
    ON CONFLICT (organization_id, issue_ref) DO NOTHING;

-- name: find_issued_under(product_id, issue_ref, terms)
-- The batch that the product's organization has issued under a reference, and whether the same was asked for.
SELECT r.batch_id AS id, b.voucher_count AS count, r.terms = $3::jsonb AS "isSame"
  FROM issue_references AS r JOIN batches AS b ON b.id = r.batch_id
 WHERE r.issue_ref = $2::text
   AND r.organization_id = (SELECT br.organization_id FROM products AS p JOIN brands AS br ON br.id = p.brand_id
                             WHERE p.id = $1::text);
