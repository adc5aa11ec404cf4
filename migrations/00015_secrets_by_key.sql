-- All secrets of a key are looked for when it is rotated or listed, and the index of current ones has the current one alone.
CREATE INDEX api_key_secrets_by_key ON api_key_secrets (key_id);
