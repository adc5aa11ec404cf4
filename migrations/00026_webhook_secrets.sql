-- Each rotation keeps the replaced secret for its own time, also when the next rotation follows before this has passed.

ALTER TABLE webhook_endpoints
  -- Until when deliveries are also signed with the secrets of earlier versions, the latest first.
  ADD COLUMN previous_secrets_until timestamptz[] NOT NULL DEFAULT '{}' CHECK (cardinality(previous_secrets_until) <= 10);
UPDATE webhook_endpoints SET previous_secrets_until = ARRAY[previous_secret_until] WHERE previous_secret_until IS NOT NULL;
ALTER TABLE webhook_endpoints DROP COLUMN previous_secret_until;

-- The versions of an endpoint's secret that sign now, the latest first.
CREATE FUNCTION signing_versions(e webhook_endpoints) RETURNS integer[] LANGUAGE sql VOLATILE AS $$
  SELECT e.secret_version || ARRAY(SELECT e.secret_version - p.n::int FROM unnest(e.previous_secrets_until) WITH ORDINALITY AS p (until, n)
                                    WHERE p.until > clock_timestamp() ORDER BY p.n)
$$;
