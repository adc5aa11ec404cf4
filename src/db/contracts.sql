-- name: insert_member
-- Makes a user a member of an organization, or changes their role.
-- $1 organization_id text, $2 user_id text, $3 role text
INSERT INTO members (organization_id, user_id, role) VALUES ($1::text, $2::text, $3::text)
    ON CONFLICT (organization_id, user_id) DO UPDATE SET role = excluded.role;

-- name: insert_contract
-- $1 id text, $2 brand_id text, $3 user_id text, $4 ends_at timestamptz or null
INSERT INTO referrer_contracts (id, brand_id, user_id, ends_at) VALUES ($1::text, $2::text, $3::text, $4::timestamptz);

-- name: move_contract
-- Moves a contract, or returns no row when it is not in one of the states that the move starts from.
-- $1 id text, $2 status text to move to, $3 status text[] to move from
UPDATE referrer_contracts AS c SET status = $2::text, changed_at = clock_timestamp()
 WHERE c.id = $1::text AND c.status = ANY ($3::text[])
RETURNING c.id;

-- name: find_contract_status
-- $1 id text
SELECT c.status FROM referrer_contracts AS c WHERE c.id = $1::text;

-- name: end_overdue_contracts
-- Records the end of Active contracts whose moment has passed, up to $1 of them, passing over those that somebody else has locked.
-- $1 limit int
UPDATE referrer_contracts AS c SET status = 'Ended', changed_at = clock_timestamp()
 WHERE c.id = ANY (ARRAY(
         SELECT d.id FROM referrer_contracts AS d WHERE d.status = 'Active' AND d.ends_at <= (SELECT clock_timestamp())
          ORDER BY d.ends_at LIMIT $1::int FOR UPDATE SKIP LOCKED));

-- name: insert_link
-- Makes a link for a contract and a product of the same brand, or returns no row when there is no such pair.
-- $1 code text, $2 contract_id text, $3 product_id text
INSERT INTO referral_links (code, contract_id, product_id, brand_id)
SELECT $1::text, c.id, p.id, p.brand_id
  FROM referrer_contracts AS c JOIN products AS p ON p.brand_id = c.brand_id
 WHERE c.id = $2::text AND p.id = $3::text
RETURNING code;

-- name: find_link
-- A link with its contract as it stands.
-- $1 code text
SELECT l.product_id, c.id AS contract_id, c.user_id AS referrer_id, c.status, c.ends_at
  FROM referral_links AS l JOIN referrer_contracts AS c ON c.id = ANY (ARRAY[l.contract_id]) WHERE l.code = $1::text;
