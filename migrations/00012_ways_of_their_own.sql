-- One way to each row. A plan that was made while a table was empty may take any way that looks as good, and read half the table by it.

-- The way to the holds whose time is over; the way from a voucher to its hold goes by `state`.
DROP INDEX reservations_live_by_end;
CREATE INDEX reservations_live_by_end ON reservations (expires_at) WHERE ended_at IS NULL;

-- The way to the contracts whose end is to be recorded; the way to a user's contract goes by `status` alone.
DROP INDEX referrer_contracts_by_end;
CREATE INDEX referrer_contracts_by_end ON referrer_contracts (ends_at) WHERE status = 'Active' AND ends_at IS NOT NULL;

-- The same promise by an expression: what begins with the organization is the way from a reference to its burn, and no other.
ALTER TABLE redemptions DROP CONSTRAINT redemptions_redeem_code;
CREATE UNIQUE INDEX redemptions_redeem_code ON redemptions ((redeem_code || ' ' || organization_id));
