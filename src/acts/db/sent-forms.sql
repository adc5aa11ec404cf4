-- name: insert_sent_form(token, command, arguments, entity_id)
-- Records that a form was sent, unless it was sent before. Waits for a transaction that claims the same form.
INSERT INTO sent_forms (token, command, arguments, entity_id) VALUES ($1::uuid, $2::text, $3::jsonb, $4::text)
    ON CONFLICT (token) DO NOTHING;

-- name: find_sent_form(token, command, arguments)
-- The entity that was created when the form was first sent, and whether the form then had the same content.
SELECT f.entity_id AS "entityId", f.command = $2::text AND f.arguments = $3::jsonb AS "isSame" FROM sent_forms AS f WHERE f.token = $1::uuid;
