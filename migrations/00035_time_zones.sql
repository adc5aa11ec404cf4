-- The zone in which the portal shows times, days and months of an organization. The API and its files keep UTC.
ALTER TABLE organizations
  ADD COLUMN time_zone text NOT NULL DEFAULT 'UTC' CHECK (length(time_zone) BETWEEN 1 AND 64);
