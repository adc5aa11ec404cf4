-- An organization's redemptions in the order of the list that partners read. On a large table, create the index without blocking redemptions
-- before the upgrade (CREATE INDEX CONCURRENTLY); this file then finds it.

-- The organization is an expression, so that no plan looks up a reference through this index.
CREATE INDEX IF NOT EXISTS redemptions_by_time ON redemptions ((organization_id || ''), redeemed_at, voucher_id);
