-- name: select_statements_to_sign
-- Final statements without the note that they are due.
SELECT s.organization_id AS "organizationId", s.month, s.content FROM statements AS s WHERE s.note_due AND s.note IS NULL LIMIT 100;

-- name: keep_note(organization_id, month, note)
-- Gives a statement its note, unless another process has.
UPDATE statements AS s SET note = $3::text WHERE s.organization_id = $1::text AND s.month = $2::text AND s.note IS NULL;
