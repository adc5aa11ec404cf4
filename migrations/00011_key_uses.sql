-- When keys were last used, to the minute. Apart from the keys, so that whoever serves calls need not be able to change a key, and so
-- that a call which reads leaves everything else as it is.

CREATE TABLE api_key_uses (
  key_id text COLLATE "C" PRIMARY KEY REFERENCES api_keys,
  last_used_at timestamptz NOT NULL
);
