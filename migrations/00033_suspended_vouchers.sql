-- A voucher can be suspended and resumed, alone or with its batch. A batch is suspended by one row, so that it holds for
-- all its vouchers at once. The histories of the vouchers follow in portions.

-- suspension: what the voucher's history says. 'own': it was suspended alone; 'batch': with its batch; NULL: neither, or
-- it was resumed. NOT VALID: no earlier row is suspended.
ALTER TABLE vouchers
  ADD COLUMN suspension text COLLATE "C",
  ADD CONSTRAINT vouchers_suspension_known CHECK (suspension IN ('own', 'batch')) NOT VALID,
  -- No statement redeems a voucher whose history says that it is suspended.
  ADD CONSTRAINT vouchers_redeemed_unsuspended CHECK (status <> 'Redeemed' OR suspension IS NULL) NOT VALID;

-- suspended_at: since when the batch and all its vouchers are suspended; NULL while they are not. suspension_reason: why it
-- was suspended or resumed last. suspension_due_at: when the sweeper continues the histories that do not follow yet; NULL
-- if none is left.
ALTER TABLE batches
  ADD COLUMN suspended_at timestamptz,
  ADD COLUMN suspension_reason text,
  ADD COLUMN suspension_due_at timestamptz,
  ADD CONSTRAINT batches_suspended_with_reason CHECK (suspended_at IS NULL OR suspension_reason IS NOT NULL) NOT VALID;
CREATE INDEX batches_suspension_due ON batches (suspension_due_at) WHERE suspension_due_at IS NOT NULL;

-- Whether a voucher is suspended, unless it is redeemed, voided or expired. The only place with this rule; a caller's plan
-- has it inline.
CREATE FUNCTION voucher_suspended(suspension text, batch_suspended_at timestamptz)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT suspension IS NOT NULL OR batch_suspended_at IS NOT NULL
$$;
