-- name: next_log_batch
-- The id of a new batch of leaves. Must run after the locks of the vouchers whose events it will have: the order of the ids is then the
-- order of each chain. Names no table: Citus sends a statement to the server that has its tables, and the sequence is not there.
SELECT nextval('log_batch_ids') AS id;

-- name: find_enabled_endpoints
-- Whether any endpoint gets events.
SELECT EXISTS (SELECT FROM webhook_endpoints AS e WHERE e.enabled) AS "hasEndpoints";

-- name: insert_log_batch
-- Adds the leaves of a transaction to those that wait for their place in the log.
-- $1 id bigint, $2 leaves int, $3 hashes bytea, 32 bytes a leaf
INSERT INTO log_batches (id, leaves, hashes) VALUES ($1::bigint, $2::int, $3::bytea);
