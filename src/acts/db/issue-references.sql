-- name: insert_issue_reference(organization_id, issue_ref, batch_id, terms)
-- Inserts the reference of a batch. Inserts no row if the organization has already used the reference, even if it was
-- erased since. Waits for a transaction that issues under the same reference.
INSERT INTO issue_references (organization_id, issue_ref, batch_id, terms) VALUES ($1::text, $2::text, $3::text, $4::jsonb)
    ON CONFLICT (organization_id, issue_ref) DO NOTHING;

-- name: find_issued_under(product_id, issue_ref, terms)
-- The batch that the product's organization issued under a reference, and whether the issuing call had the same
-- `terms`. Finds it even if the reference was erased since.
SELECT r.batch_id AS id, b.voucher_count AS count, r.terms = $3::jsonb AS "isSame"
  FROM products AS p
  JOIN brands AS br ON br.id = p.brand_id
  JOIN issue_references AS r ON r.organization_id = br.organization_id
       AND r.issue_ref = ANY (ARRAY[$2::text, erased_form(br.organization_id, $2::text)])
  JOIN batches AS b ON b.id = r.batch_id
 WHERE p.id = $1::text;

-- name: find_batch_issued_under(organization_id, issue_ref)
-- The batch that an organization issued under a reference. Finds it even if the reference was erased since.
SELECT r.batch_id AS id FROM issue_references AS r
 WHERE r.organization_id = $1::text AND r.issue_ref = ANY (ARRAY[$2::text, erased_form($1::text, $2::text)]);

-- name: select_issue_references(batch_ids)
-- The references under which batches were issued. A batch without one is left out.
SELECT r.batch_id AS "batchId", r.issue_ref AS "issueRef" FROM issue_references AS r WHERE r.batch_id = ANY ($1::text[]);
