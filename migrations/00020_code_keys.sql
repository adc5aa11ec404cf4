-- Codes are compared without full stops, low lines and asterisks. Imported codes that contain some get the new form.
-- Fails if an organization has two codes that differ in these characters only: one of them could no longer be told from the other.
UPDATE vouchers SET code_key = translate(code_key, '*._', '') WHERE code_key ~ '[*._]' AND length(translate(code_key, '*._', '')) >= 4;
