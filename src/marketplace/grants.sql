-- The rights that the statements of the marketplace need, in addition to those of the core.

GRANT EXECUTE ON FUNCTION may_see_sandbox(text, text, text) TO pva_api;

-- Acquisitions are inserted and never changed.
GRANT INSERT (claimed_at, user_id, product_id, voucher_id) ON claims TO pva_api;
GRANT INSERT (bought_at, organization_id, user_id, payment_ref, voucher_id) ON purchases TO pva_api;

-- The sweeper records the end of contracts.
GRANT UPDATE (status, changed_at) ON referrer_contracts TO pva_api;

-- Administrators list batches, and manage contracts and links.
GRANT INSERT (id, batch_id) ON listings TO pva_admin;
GRANT INSERT (id, brand_id, user_id, ends_at), UPDATE (status, changed_at) ON referrer_contracts TO pva_admin;
GRANT INSERT (code, contract_id, product_id, brand_id) ON referral_links TO pva_admin;
