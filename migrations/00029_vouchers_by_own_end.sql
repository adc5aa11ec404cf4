-- postgres-migrations disable-transaction
-- Finds the extended vouchers whose expiry must be recorded.
CREATE INDEX CONCURRENTLY vouchers_by_own_end ON vouchers (valid_until) WHERE expiry_due;
