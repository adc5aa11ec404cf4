-- Claims and purchases are inserted together with their voucher, and a purchase is unique per organization. A payment reference comes from
-- a storefront, and storefronts of two organizations may use the same one for the same user.

DROP TRIGGER claims_voucher_set ON claims;
DROP TRIGGER purchases_voucher_set ON purchases;
DROP FUNCTION check_voucher_is_set();

ALTER TABLE claims ALTER COLUMN voucher_id SET NOT NULL;

ALTER TABLE purchases ADD COLUMN organization_id text COLLATE "C";
ALTER TABLE purchases DISABLE TRIGGER purchases_immutable;
UPDATE purchases AS s SET organization_id = v.organization_id FROM vouchers AS v WHERE v.id = s.voucher_id;
ALTER TABLE purchases ENABLE TRIGGER purchases_immutable;
ALTER TABLE purchases
  -- The organization of the voucher. No foreign key, as in vouchers.
  ALTER COLUMN organization_id SET NOT NULL,
  ALTER COLUMN voucher_id SET NOT NULL,
  DROP CONSTRAINT purchases_pkey,
  ADD PRIMARY KEY (organization_id, user_id, payment_ref);
