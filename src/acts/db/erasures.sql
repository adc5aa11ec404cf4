-- name: find_erasable(organization_id?, external_ref?, user_id?, event_types, after, limit, up_to?)
-- The next vouchers, in id order, from which something must be erased: an event of one of the types, or the reason why
-- a reservation was released. Finds the vouchers of an organization's reference, or of a user. The other parameters are
-- null. A user's vouchers are those that the user claimed or bought, and those that others claimed through the user's
-- links. With `up_to`, considers only what was written until then.
SELECT f.voucher_id AS "voucherId"
  FROM (SELECT rd.voucher_id FROM redemptions AS rd
         WHERE rd.organization_id = $1::text
           AND rd.external_ref = ANY (ARRAY[$2::text, erased_form($1::text, $2::text)])
         UNION
        SELECT c.voucher_id FROM claims AS c WHERE c.user_id = ANY (ARRAY[$3::text, erased_form('', $3::text)])
         UNION
        SELECT p.voucher_id FROM purchases AS p WHERE p.user_id = ANY (ARRAY[$3::text, erased_form('', $3::text)])
         UNION
        SELECT e.voucher_id FROM referrer_contracts AS r
          JOIN referral_links AS l ON l.contract_id = r.id
          JOIN claims AS k ON k.product_id = l.product_id
          JOIN voucher_events AS e
            ON e.voucher_id = k.voucher_id AND e.event_type = 'voucher.instance.claimed' AND e.erased_by IS NULL
         WHERE r.user_id = ANY (ARRAY[$3::text, erased_form('', $3::text)])
           AND coalesce(e.payload::jsonb #>> '{data,referrer}', e.data->>'referrer') = $3::text) AS f
 WHERE f.voucher_id > $5::text
   AND (EXISTS (SELECT FROM voucher_events AS e
                 WHERE e.voucher_id = f.voucher_id AND e.erased_by IS NULL AND e.event_type = ANY ($4::text[])
                   AND e.occurred_at <= coalesce($7::timestamptz, 'infinity'))
        OR EXISTS (SELECT FROM reservations AS h
                    WHERE h.voucher_id = f.voucher_id AND h.state <> 'Live' AND h.end_reason <> 'voided'
                      AND h.ended_at <= coalesce($7::timestamptz, 'infinity')))
 ORDER BY f.voucher_id LIMIT $6::int;

-- name: select_erasable_events(voucher_id, event_types, user_id?)
-- The events of locked vouchers that have a payload and one of the types, in chain order. Leaves out events without a
-- reason whose type names no person. Includes Pending events, which the transaction seals first. With a user, only
-- events of vouchers that the user claimed or bought, and claims through the user's links. The texts are those that
-- identify a person.
SELECT e.voucher_id AS "voucherId", e.sequence, e.occurred_at AS "occurredAt", e.event_type AS "eventType",
       jsonb_strip_nulls(jsonb_build_object(
         'actorConnectedId', CASE WHEN e.event_type IN ('voucher.instance.claimed', 'voucher.instance.bought') THEN e.actor_connected_id END,
         'referrer', d.said->'referrer', 'paymentRef', d.said->'paymentRef', 'externalRef', d.said->'externalRef',
         'note', d.said->'note', 'reason', d.said->'reason')) AS texts
  FROM voucher_events AS e
 CROSS JOIN LATERAL (SELECT coalesce(e.payload::jsonb -> 'data', e.data::jsonb) AS said OFFSET 0) AS d
 WHERE e.voucher_id = ANY ($1::text[]) AND e.event_type = ANY ($2::text[]) AND e.erased_by IS NULL
   AND (e.event_type IN ('voucher.instance.claimed', 'voucher.instance.bought', 'voucher.instance.redeemed') OR d.said ? 'reason')
   AND ($3::text IS NULL OR d.said->>'referrer' = $3::text
        OR EXISTS (SELECT FROM claims AS c
                    WHERE c.voucher_id = e.voucher_id AND c.user_id = ANY (ARRAY[$3::text, erased_form('', $3::text)]))
        OR EXISTS (SELECT FROM purchases AS p
                    WHERE p.voucher_id = e.voucher_id AND p.user_id = ANY (ARRAY[$3::text, erased_form('', $3::text)])))
 ORDER BY e.voucher_id, e.sequence;

-- name: select_texts_beside_events(voucher_id, event_voucher_id, event_type, reason?, user_id?)
-- The texts of vouchers that erase_events would replace or remove outside the payloads of these events, oldest first.
-- With a user, the texts of other users and the release reasons of vouchers that the user did not acquire are null.
WITH events AS (
  SELECT w.voucher_id, w.event_type, w.reason FROM unnest($2::text[], $3::text[], $4::text[]) AS w (voucher_id, event_type, reason)
), erased AS (
  SELECT n.voucher_id, n.event_type FROM events AS n
   UNION
  SELECT e.voucher_id, e.event_type FROM voucher_events AS e WHERE e.voucher_id = ANY ($1::text[]) AND e.erased_by IS NOT NULL
), users AS (
  SELECT c.voucher_id, c.user_id, c.claimed_at AS at, 'claim' AS kind, NULL AS payment_ref, 'voucher.instance.claimed' AS event_type
    FROM claims AS c WHERE c.voucher_id = ANY ($1::text[])
   UNION ALL
  SELECT p.voucher_id, p.user_id, p.bought_at, 'purchase', p.payment_ref, 'voucher.instance.bought'
    FROM purchases AS p WHERE p.voucher_id = ANY ($1::text[])
)
SELECT f.kind, f.id, f.at, f.text
  FROM (SELECT 'redemption' AS kind, rd.voucher_id AS id, rd.redeemed_at AS at, rd.external_ref AS text
          FROM redemptions AS rd JOIN erased AS g ON g.voucher_id = rd.voucher_id AND g.event_type = 'voucher.instance.redeemed'
         WHERE rd.voucher_id = ANY ($1::text[]) AND NOT starts_with(rd.external_ref, 'erased:')
         UNION ALL
        SELECT k.kind, u.voucher_id, u.at, CASE WHEN $5::text IS NULL OR u.user_id = $5::text THEN k.text END
          FROM users AS u JOIN erased AS g ON g.voucher_id = u.voucher_id AND g.event_type = u.event_type
         CROSS JOIN LATERAL (VALUES (u.kind, u.user_id), ('payment', u.payment_ref)) AS k (kind, text)
         WHERE NOT starts_with(u.user_id, 'erased:') AND k.text IS NOT NULL
         UNION ALL
        SELECT 'release', h.voucher_id, h.ended_at,
               CASE WHEN $5::text IS NULL OR EXISTS (SELECT FROM users AS u WHERE u.voucher_id = h.voucher_id
                         AND u.user_id = ANY (ARRAY[$5::text, erased_form('', $5::text)])) THEN h.end_reason END
          FROM reservations AS h
         WHERE h.voucher_id = ANY ($1::text[]) AND h.state <> 'Live' AND h.end_reason <> 'voided'
         UNION ALL
        SELECT 'audit reason', a.entity_id, a.at, a.arguments->>'reason'
          FROM audit_entries AS a
         WHERE a.entity_id = ANY ($1::text[]) AND NOT starts_with(a.arguments->>'reason', 'erased:')
           AND EXISTS (SELECT FROM events AS n WHERE n.voucher_id = a.entity_id AND n.reason = a.arguments->>'reason')) AS f
 ORDER BY f.id, f.at, f.kind;

-- name: select_texts_of_user(user_id)
-- The texts that erase_user would replace, oldest first.
SELECT f.kind, f.id, f.at, $1::text AS text
  FROM (SELECT 'member' AS kind, m.organization_id AS id, m.created_at AS at FROM members AS m WHERE m.user_id = $1::text
         UNION ALL
        SELECT 'contract', c.id, c.offered_at FROM referrer_contracts AS c WHERE c.user_id = $1::text
         UNION ALL
        -- This expression must be the same as in erase_user, because an index is built on it.
        SELECT 'audit entry', a.entity_id, a.at FROM audit_entries AS a
         WHERE ARRAY[(a.arguments->>'user') COLLATE "C", a.before->>'userId', a.after->>'userId',
                     CASE WHEN a.entity_type = 'Member' OR a.command = 'member add'
                          THEN substr(a.entity_id, strpos(a.entity_id, '/') + 1) END] @> ARRAY[$1::text]
           AND $1::text = ANY (named_users(to_jsonb(a)))
         UNION ALL
        SELECT 'form', s.entity_id, s.sent_at FROM sent_forms AS s WHERE $1::text = ANY (named_users(to_jsonb(s)))) AS f
 ORDER BY f.at, f.kind, f.id;

-- name: select_texts_of_batch_reference(organization_id, reference)
-- The texts that erase_reference would replace.
WITH batch AS (
  SELECT r.batch_id, r.issued_at, r.issue_ref FROM issue_references AS r
   WHERE r.organization_id = $1::text AND r.issue_ref = $2::text AND r.erased_at IS NULL
)
SELECT 'batch' AS kind, b.batch_id AS id, b.issued_at AS at, b.issue_ref AS text FROM batch AS b
 UNION ALL
SELECT 'audit entry', a.entity_id, a.at, a.arguments->>'issueRef'
  FROM audit_entries AS a JOIN batch AS b ON b.batch_id = a.entity_id
 WHERE NOT starts_with(a.arguments->>'issueRef', 'erased:');

-- name: select_texts(voucher_id)
-- The keys of the advisory locks that erase_events takes for the references and users of these vouchers.
SELECT v.id, k.kind, k.text FROM unnest($1::text[]) AS v (id)
 CROSS JOIN LATERAL (SELECT hashtext(rd.organization_id) AS kind, hashtext(rd.external_ref) AS text
                       FROM redemptions AS rd WHERE rd.voucher_id = v.id
                      UNION ALL
                     SELECT 1701995891, hashtext(c.user_id) FROM claims AS c WHERE c.voucher_id = v.id
                      UNION ALL
                     SELECT 1701995891, hashtext(p.user_id) FROM purchases AS p WHERE p.voucher_id = v.id) AS k;

-- name: try_lock_texts(id, kind, text)
-- Tries the locks of references and users without waiting. Returns the vouchers with a lock that could not be taken.
SELECT t.id FROM unnest($1::text[], $2::int[], $3::int[]) AS t (id, kind, text)
 GROUP BY t.id HAVING NOT bool_and(pg_try_advisory_xact_lock(t.kind, t.text));

-- name: wait_for_text(kind, text)
-- Waits for the advisory lock of a reference or a user, at most for the transaction's lock_timeout.
SELECT pg_advisory_xact_lock($1::int, $2::int);

-- name: erase_events(voucher_id, sequence?, up_to?)
-- In the chains of locked vouchers, erases the events that the given erasing events list, and the reasons of
-- reservations. With `up_to`, only reasons of reservations that ended until then. A voucher's sequence is null if none
-- of its events is erased.
SELECT e.erased_vouchers AS vouchers, e.erased_events AS events, e.erased_texts AS texts
  FROM erase_events($1::text[], $2::int[], coalesce($3::timestamptz, 'infinity')) AS e;

-- name: erase_user(user_id, up_to?)
-- Replaces a user's id in all tables that are not about vouchers. With `up_to`, only in what was written until then.
SELECT e.erased_texts AS texts FROM erase_user($1::text, coalesce($2::timestamptz, 'infinity')) AS e;

-- name: erase_reference(organization_id, reference, up_to?)
-- Waits for transactions that write redemptions and batches under a reference. Replaces the reference of a batch. With
-- `up_to`, only if the batch was issued until then.
SELECT e.erased_texts AS texts FROM erase_reference($1::text, $2::text, coalesce($3::timestamptz, 'infinity')) AS e;

-- name: find_erased_form(owner, text)
-- The text that replaces an organization's text or, if owner is empty, a user's id. Null for an unknown organization.
SELECT erased_form($1::text, $2::text) AS form;

-- name: select_erasures(since)
-- The erasures since a time, oldest first, each with the erased events and the time up to which it erased. The list of
-- events is empty if only the reasons of released reservations were erased.
SELECT r.voucher_id AS "voucherId", r.up_to AS "erasedAt",
       ARRAY(SELECT e.sequence FROM voucher_events AS e
              WHERE e.voucher_id = r.voucher_id AND e.erased_by = r.sequence ORDER BY e.sequence) AS sequences
  FROM erasures AS r WHERE r.erased_at >= $1::timestamptz ORDER BY r.erased_at, r.voucher_id, r.sequence;

-- name: select_erased_references(since)
-- For redemptions and batches that were erased since a time: the texts that replaced their references, and the time up
-- to which the erasure erased. If a reference has a batch, the batch's time counts, because a replay finds references
-- by their batches.
SELECT f.organization_id AS "organizationId", f.reference, coalesce(max(f.of_batch), max(f.of_order)) AS "erasedAt"
  FROM (SELECT rd.organization_id, rd.external_ref AS reference, NULL::timestamptz AS of_batch, w.up_to AS of_order
          FROM (SELECT r.voucher_id, max(r.up_to) AS up_to FROM erasures AS r WHERE r.erased_at >= $1::timestamptz
                 GROUP BY r.voucher_id) AS w
          JOIN redemptions AS rd ON rd.voucher_id = w.voucher_id
         WHERE starts_with(rd.external_ref, 'erased:')
         UNION ALL
        SELECT r.organization_id, r.issue_ref, r.erased_up_to, NULL
          FROM issue_references AS r WHERE r.erased_at >= $1::timestamptz) AS f
 GROUP BY f.organization_id, f.reference ORDER BY 1, 2;

-- name: select_erased_users(since)
-- The texts that replaced the ids of users who were erased since a time, and the time up to which their data was
-- erased.
SELECT u.user_id AS form, u.up_to AS "erasedAt" FROM erased_users AS u
 WHERE u.erased_at >= $1::timestamptz ORDER BY u.erased_at, u.user_id;

-- name: find_users_to_erase(form)
-- The users whose original ids are in the database although an erasure replaced them by `form`, as after a restore.
SELECT u.user_id AS "userId", u.form FROM find_erased_users($1::text[]) AS u;

-- name: find_references_to_erase(organization_id, form)
-- The batches whose original references are in the database after a restore, although an erasure replaced them by
-- `form`.
SELECT r.organization_id AS "organizationId", r.issue_ref AS "externalRef", r.form
  FROM find_erased_references($1::text[], $2::text[]) AS r;
