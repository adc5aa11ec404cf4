-- name: next_log_batch
-- The id of a new batch of leaves. Must run after the transaction has locked the vouchers whose events the batch will have. Then the batches
-- with events of one voucher have ids in the order of its chain.
SELECT nextval('log_batch_ids') AS id;

-- name: find_enabled_endpoints
-- Whether any webhook endpoint is enabled.
SELECT EXISTS (SELECT FROM webhook_endpoints AS e WHERE e.enabled) AS "hasEndpoints";

-- name: insert_log_batch
-- Adds the leaves of a transaction. They wait here for their place in the log.
-- $1 id bigint, $2 leaves int, $3 hashes bytea, 32 bytes a leaf
INSERT INTO log_batches (id, leaves, hashes) VALUES ($1::bigint, $2::int, $3::bytea);
