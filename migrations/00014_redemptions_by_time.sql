-- Finds the last redemptions of an organization. On a large table, create the index without blocking redemptions before the upgrade
-- (CREATE INDEX CONCURRENTLY); this file then finds it. The organization is an expression, so that no plan looks up a reference here.
CREATE INDEX IF NOT EXISTS redemptions_by_time ON redemptions ((organization_id || ''), redeemed_at, voucher_id);
