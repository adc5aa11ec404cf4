-- The rights that the statements of the marketplace need, in addition to those of the core.

GRANT EXECUTE ON FUNCTION may_see_sandbox(text, text, text) TO pva_api;

-- Acquisitions are inserted and never changed.
GRANT INSERT (claimed_at, user_id, product_id, voucher_id) ON claims TO pva_api;
GRANT INSERT (bought_at, organization_id, user_id, payment_ref, voucher_id) ON purchases TO pva_api;
