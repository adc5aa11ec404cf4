-- postgres-migrations disable-transaction
-- Finds sealed events in the order of the feed. Its newest entries are at its end, which costs a redemption the least.
CREATE INDEX CONCURRENTLY voucher_events_by_slot ON voucher_events (log_slot) WHERE log_slot IS NOT NULL;
