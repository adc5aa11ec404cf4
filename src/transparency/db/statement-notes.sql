-- name: select_statements_to_sign
-- Final statements that need a note and have none yet.
SELECT s.organization_id AS "organizationId", s.month, s.content FROM statements AS s WHERE s.note_due AND s.note IS NULL LIMIT 100;

-- name: keep_note(organization_id, month, note)
-- Stores the note of a statement, unless another process has stored one.
UPDATE statements AS s SET note = $3::text WHERE s.organization_id = $1::text AND s.month = $2::text AND s.note IS NULL;
