-- name: advance_sandbox(organization_id, seconds, key_id, os_user, host)
-- In one transaction, moves the future times of a sandbox organization earlier, such as ends of reservations and
-- windows, and inserts an audit entry. Raises restrict_violation if the organization is not a sandbox, and
-- program_limit_exceeded if it has more than 10 000 Live reservations. endedTickets and endedVoucherIds have the same
-- order: each ticket is that of the voucher at the same position.
SELECT a.ended_tickets AS "endedTickets", a.ended_voucher_ids AS "endedVoucherIds", a.expired_batch_ids AS "expiredBatchIds",
       a.vouchers_expired AS "vouchersExpired"
  FROM advance_sandbox($1::text, $2::int, $3::text, $4::text, $5::text) AS a;
