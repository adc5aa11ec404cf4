-- Tells uses of a key's previous secrets from those of its current one: last_used_at is when the secret was used that was current then.
ALTER TABLE api_key_uses ADD COLUMN old_secrets_used_at timestamptz, ALTER COLUMN last_used_at DROP NOT NULL;
