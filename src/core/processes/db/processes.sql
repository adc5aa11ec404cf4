-- name: record_process(id, role, host, pid, version, queues, busy, problem?)
-- Records that a process runs. Waits only for the disk of this server, not for standbys, because a missing synchronous
-- standby is a fault to be reported too.
INSERT INTO processes AS p (id, role, host, pid, version, queues, busy, problem)
SELECT $1::text, $2::text, $3::text, $4::integer, $5::text, $6::text[], $7::real, $8::text
  FROM set_config('synchronous_commit', 'local', true)
    ON CONFLICT (id)
    DO UPDATE SET seen_at = clock_timestamp(), queues = excluded.queues, busy = excluded.busy, problem = excluded.problem;

-- name: end_process(id)
-- Records that a process ends. From then on, it counts as not seen.
UPDATE processes AS p SET seen_at = 'epoch' FROM set_config('synchronous_commit', 'local', true) WHERE p.id = $1::text;

-- name: remove_unseen_processes
-- Removes processes that have not been seen for ten minutes.
DELETE FROM processes AS p WHERE p.seen_at < clock_timestamp() - interval '10 minutes';

-- name: answer_canaries(process_id)
-- Records that the canaries of these processes are committed. Writes to no other table, but takes a redemption's locks
-- on tables, so that it waits like a redemption. Skips locked rows, so that redemptions in the same transaction wait
-- for none of them. Returns the processes whose rows were written, because only a transaction that has written shows
-- that it can commit.
WITH redeemed AS (INSERT INTO redemptions SELECT r.* FROM redemptions AS r WHERE false),
     sealed AS (INSERT INTO voucher_events SELECT e.* FROM voucher_events AS e WHERE false),
     changed AS (UPDATE vouchers SET status = 'Redeemed' WHERE false)
UPDATE processes AS p SET canary_at = clock_timestamp()
  FROM (SELECT o.id FROM processes AS o WHERE o.id = ANY ($1::text[]) FOR UPDATE SKIP LOCKED) AS free
 WHERE p.id = free.id
RETURNING p.id;

-- name: read_processes(up_ms)
-- The processes that were seen in the last ten minutes.
SELECT p.id, p.role, p.host, p.pid, p.version, p.queues, p.started_at AS since, p.seen_at AS "seenAt", p.busy, p.problem, p.canary_at AS "canaryAt",
       abs(extract(epoch FROM clock_timestamp() - p.seen_at)) * 1000 < $1::integer AS "isUp",
       (extract(epoch FROM clock_timestamp() - p.canary_at) * 1000)::bigint AS "canaryAgeMs"
  FROM processes AS p WHERE p.seen_at > clock_timestamp() - interval '10 minutes' ORDER BY p.role, p.started_at, p.id;
